"""A capability for PydanticAI: its agent sends short requests and keeps the whole history. One for each conversation.

`Agent(model, capabilities=[Summarizing(provider)])`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, ToolReturnPart, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability

from context_summarize import SummarizingContextManager


class Summarizing(AbstractCapability[Any]):
    """Puts the rows of a context in place of an agent's messages."""

    def __init__(self, provider: Any) -> None:
        self.context, self.provider = SummarizingContextManager(summary_role="user"), provider

    async def before_model_request(self, ctx: Any, request: Any) -> Any:
        """Replaces the messages of a request by a view of them."""
        whole: list[ModelMessage] = [*request.messages]
        await self.context.set_messages([row for at, one in enumerate(whole) for row in rows_of(at, one)])
        view, last = list[ModelMessage](), None
        for row in await self.context.get_messages_for_request(provider=self.provider):
            at, number = row["metadata"].get("at", (None, None))
            if at is None:
                view.append(ModelRequest([UserPromptPart(row["content"])]))
            elif isinstance(message := whole[at], ModelResponse):
                view.append(message)
            else:
                part = message.parts[number]
                if isinstance(part, ToolReturnPart):
                    part = replace(part, content=row["content"])
                before = view.pop().parts if at == last else []
                view.append(replace(message, parts=[*before, part]))
            last = at
        request.messages = view
        return request


def rows_of(at: int, message: ModelMessage) -> Iterator[dict[str, Any]]:
    """Yields the rows of a message; their metadata says which one it is, and which of its parts."""
    if isinstance(message, ModelResponse):
        calls = [
            {"id": call.tool_call_id, "tool": call.tool_name, "arguments": call.args} for call in message.tool_calls
        ]
        yield {"role": "assistant", "content": message.text or "", "tool_calls": calls, "metadata": {"at": (at, 0)}}
        return
    for number, part in enumerate(message.parts):
        row: dict[str, Any] = {
            "role": "user",
            "content": str(getattr(part, "content", "")),
            "metadata": {"at": (at, number)},
        }
        if getattr(part, "tool_name", None):
            row |= {"role": "tool", "tool_call_id": getattr(part, "tool_call_id", None)}
        yield row | ({"role": "system"} if isinstance(part, SystemPromptPart) else {})
