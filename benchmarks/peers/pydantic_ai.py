"""pydantic-ai-harness' `SummarizingCompaction` as a contestant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

from .base import Peer, Row, Terms, calls_of, result, spoken, text_of


class PydanticAI(Peer):
    """`SummarizingCompaction`, called as the agent calls it before each model request.

    By its defaults the summariser reads 500 characters of each tool return.
    """

    packages = ("pydantic-ai-harness", "pydantic-ai-slim")
    system_apart = False

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._ai = import_module("pydantic_ai.messages")
        self._tools = import_module("pydantic_ai.tools")
        self._models = import_module("pydantic_ai.models")
        self._usage = import_module("pydantic_ai.usage").RunUsage
        overflow = import_module("pydantic_ai.exceptions").ModelContextWindowExceededError
        self.too_long = partial(overflow, "stand-in")
        self._model = import_module("pydantic_ai.models.function").FunctionModel(self._respond)
        self._compaction = import_module("pydantic_ai_harness.compaction").SummarizingCompaction(
            max_tokens=terms.trigger_tokens, keep_messages=terms.keep, tokenizer=terms.count, **self.options
        )

    async def view(self) -> list[Row]:
        context = self._tools.RunContext(deps=None, model=self._model, usage=self._usage(), messages=self._messages)
        request = self._models.ModelRequestContext(
            model=self._model,
            messages=list(self._messages),
            model_settings=None,
            model_request_parameters=self._models.ModelRequestParameters(),
        )
        request = await self._compaction.before_model_request(context, request)
        return self._rows(request.messages)

    def _there(self, messages: list[Any], row: Row) -> None:
        """Appends a row; results of parallel calls share one request."""
        ai, text = self._ai, text_of(row)
        match row["role"]:
            case "assistant":
                said = [ai.TextPart(text)] if text or not calls_of(row) else []
                made = [ai.ToolCallPart(call["tool"], call["arguments"], call["id"]) for call in calls_of(row)]
                messages.append(ai.ModelResponse([*said, *made]))
            case "tool":
                part = ai.ToolReturnPart(row["name"], text, row["tool_call_id"])
                last = messages[-1] if messages else None
                if isinstance(last, ai.ModelRequest) and isinstance(last.parts[-1], ai.ToolReturnPart):
                    last.parts = [*last.parts, part]
                else:
                    messages.append(ai.ModelRequest([part]))
            case role:
                made_of = ai.SystemPromptPart if role == "system" else ai.UserPromptPart
                messages.append(ai.ModelRequest([made_of(text)]))

    def _back(self, message: Any) -> Iterator[Row]:
        ai = self._ai
        if isinstance(message, ai.ModelResponse):
            calls = [(p.tool_call_id, p.tool_name, p.args) for p in message.parts if isinstance(p, ai.ToolCallPart)]
            text = "\n".join(part.content for part in message.parts if isinstance(part, ai.TextPart))
            yield spoken("assistant", text, calls)
            return
        for part in message.parts:
            if isinstance(part, ai.ToolReturnPart):
                yield result(part.tool_call_id, part.tool_name, part.content)
            else:
                yield spoken("system" if isinstance(part, ai.SystemPromptPart) else "user", part.content)

    async def _respond(self, messages: list[Any], info: Any) -> Any:
        ai = self._ai
        asked = [part for message in messages for part in message.parts if isinstance(part, ai.UserPromptPart)]
        shown, limit = "\n\n".join(part.content for part in asked), (info.model_settings or {}).get("max_tokens")
        return ai.ModelResponse([ai.TextPart(await self._ask(shown, info.instructions or "", limit))])
