"""pydantic-ai-harness' `SummarizingCompaction` as a contestant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from .base import DoesNotFit, Row, Terms, calls_of, result, spoken, text_of


class PydanticAI:
    """`SummarizingCompaction`, called as the agent calls it before each model request.

    By its defaults the summariser reads 500 characters of each tool return.
    """

    packages: tuple[str, ...] = ("pydantic-ai-harness", "pydantic-ai-slim")
    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, terms: Terms) -> None:
        self._ai = import_module("pydantic_ai.messages")
        self._tools = import_module("pydantic_ai.tools")
        self._models = import_module("pydantic_ai.models")
        self._usage = import_module("pydantic_ai.usage").RunUsage
        self._terms = terms
        self._model = self._stand_in()
        self._compaction = import_module("pydantic_ai_harness.compaction").SummarizingCompaction(
            max_tokens=terms.trigger_tokens, keep_messages=terms.keep, tokenizer=terms.count, **self.options
        )
        self._messages: list[Any] = []

    async def add(self, row: Row) -> None:
        self._append(self._messages, row)

    async def view(self) -> list[Row]:
        context = self._tools.RunContext(deps=None, model=self._model, usage=self._usage(), messages=self._messages)
        request = self._models.ModelRequestContext(
            model=self._model,
            messages=list(self._messages),
            model_settings=None,
            model_request_parameters=self._models.ModelRequestParameters(),
        )
        request = await self._compaction.before_model_request(context, request)
        return [row for message in request.messages for row in self._rows(message)]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        messages: list[Any] = []
        for row in rows:
            self._append(messages, row)
        return [back for message in messages for back in self._rows(message)]

    async def close(self) -> None:
        pass

    def _append(self, messages: list[Any], row: Row) -> None:
        """Results of parallel calls share one request."""
        ai, text, metas = self._ai, text_of(row), {"rows": [row.get("metadata")]}
        match row["role"]:
            case "assistant":
                said = [ai.TextPart(text)] if text or not calls_of(row) else []
                made = [ai.ToolCallPart(call["tool"], call["arguments"], call["id"]) for call in calls_of(row)]
                messages.append(ai.ModelResponse([*said, *made], metadata=metas))
            case "tool":
                part = ai.ToolReturnPart(row["name"], text, row["tool_call_id"])
                last = messages[-1] if messages else None
                if isinstance(last, ai.ModelRequest) and isinstance(last.parts[-1], ai.ToolReturnPart):
                    last.parts = [*last.parts, part]
                    last.metadata = {"rows": last.metadata["rows"] + metas["rows"]}
                else:
                    messages.append(ai.ModelRequest([part], metadata=metas))
            case role:
                made_of = ai.SystemPromptPart if role == "system" else ai.UserPromptPart
                messages.append(ai.ModelRequest([made_of(text)], metadata=metas))

    def _rows(self, message: Any) -> Iterator[Row]:
        ai = self._ai
        metas = (message.metadata or {}).get("rows") or [None] * len(message.parts)
        if isinstance(message, ai.ModelResponse):
            calls = [(p.tool_call_id, p.tool_name, p.args) for p in message.parts if isinstance(p, ai.ToolCallPart)]
            text = "\n".join(part.content for part in message.parts if isinstance(part, ai.TextPart))
            yield spoken("assistant", text, calls, metas[0])
            return
        for part, meta in zip(message.parts, metas, strict=True):
            if isinstance(part, ai.ToolReturnPart):
                yield result(part.tool_call_id, part.tool_name, part.content, meta)
            else:
                yield spoken("system" if isinstance(part, ai.SystemPromptPart) else "user", part.content, meta=meta)

    def _stand_in(self) -> Any:
        ai, terms = self._ai, self._terms
        overflow = import_module("pydantic_ai.exceptions").ModelContextWindowExceededError

        async def respond(messages: list[Any], info: Any) -> Any:
            asked = [part for message in messages for part in message.parts if isinstance(part, ai.UserPromptPart)]
            shown = "\n\n".join(part.content for part in asked)
            limit = (info.model_settings or {}).get("max_tokens")
            try:
                said = await terms.ask(shown, info.instructions or "", limit)
            except DoesNotFit as error:
                raise overflow("stand-in", str(error)) from error
            return ai.ModelResponse([ai.TextPart(said)])

        return import_module("pydantic_ai.models.function").FunctionModel(respond)
