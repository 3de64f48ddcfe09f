"""`ContextTool`: the Amplifier tool by which a user steers the context through the model; and its `mount()`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from amplifier_core.models import ToolResult

from context_summarize.errors import SteeringError
from context_summarize.recall.tool_input import number_as_text, text_fields
from context_summarize.transcript.wording import counted

NAME = "context"
Action = Literal["status", "compact", "undo", "pin", "unpin"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_MOST_KEEP = 1_000
"""Characters of `keep`: it becomes a part of one summary's instruction."""
_MOST_MESSAGES = 50
_NAMED = 20
"""Numbers that an answer lists."""
_RANGE = re.compile(r"#?(\d{1,9})(?:\s*(?:-|–|to)\s*#?(\d{1,9}))?")

_DESCRIPTION = """\
Steers how this conversation is kept within the model's window. Use it only when the user asks for it. Give an action:
- status: how full the window is, and what has been summarised
- compact: summarise older messages now; keep says in words what the summary must not lose
- undo: take the last compaction back
- pin: keep messages word for word from the next compaction on; messages gives their numbers, such as "12" or "3, 7-9"
- unpin: let go of these messages, or of all if messages is not given
Summaries and the tool recall name message numbers. Tell the user the answer in one sentence."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What the tool is asked to do.

    Raises:
        SteeringError: the action is unknown, or a field does not belong to it.
    """

    action: str
    keep: str | None = None
    """What the summary of a `compact` must not lose, in words."""
    messages: str | None = None
    """Message numbers of `pin` and `unpin`."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise SteeringError(f"unknown action {self.action[:40]!r}; give one of {', '.join(ACTIONS)}")
        if self.keep is not None and self.action != "compact":
            raise SteeringError(f"keep belongs to the action compact, not to {self.action}; leave it out")
        if self.messages is not None and self.action not in ("pin", "unpin"):
            raise SteeringError(f"messages belongs to the actions pin and unpin, not to {self.action}; leave it out")
        if self.messages is None and self.action == "pin":
            raise SteeringError('pin needs messages: their numbers, such as "12" or "3, 7-9"')
        if self.keep is not None and len(self.keep) > _MOST_KEEP:
            raise SteeringError(f"keep has {len(self.keep):,} characters; give at most {_MOST_KEEP:,}")

    @classmethod
    def from_input(cls, given: Any) -> ContextRequest:
        """A request from a tool's input; see `text_fields`.

        Raises:
            SteeringError: the input has an unknown field, a value that is not text, or no known action.
        """
        known = [field.name for field in fields(cls)]
        values = text_fields(given, known, choice=", ".join(known), as_text=_as_text, refuse=SteeringError)
        if "action" not in values:
            raise SteeringError(f"give an action: one of {', '.join(ACTIONS)}")
        return cls(**values)

    def numbers(self) -> list[int] | None:
        """The message numbers, without repeats; None if none are given.

        Raises:
            SteeringError: it is no list of numbers and ranges, or names too many.
        """
        if self.messages is None:
            return None
        found: dict[int, None] = {}
        for part in filter(None, re.split(r"[,;]|\band\b", self.messages)):
            match = _RANGE.fullmatch(part.strip())
            if match is None:
                raise SteeringError(
                    f'messages must be numbers such as "12" or "3, 7-9", got {self.messages[:40]!r}; summaries and '
                    "recall name them"
                )
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                raise SteeringError(f"the range {first}-{last} runs backwards; give {last}-{first}")
            if last - first >= _MOST_MESSAGES or len(found.keys() | set(range(first, last + 1))) > _MOST_MESSAGES:
                raise SteeringError(f"at most {_MOST_MESSAGES} messages can be named at once; name fewer")
            found |= dict.fromkeys(range(first, last + 1))
        if not found:
            raise SteeringError('messages names none; give numbers such as "12" or "3, 7-9"')
        return list(found)


def _as_text(value: Any) -> Any:
    """A number, or a list of numbers and ranges, as the text that it stands for: models send them so."""
    if isinstance(value, list | tuple) and not any(isinstance(item, list | tuple) for item in value):
        parts = [_as_text(item) for item in value[: _MOST_MESSAGES + 1]]
        return ", ".join(parts) if all(isinstance(part, str) for part in parts) else value
    return number_as_text(value)


class ContextTool:
    """The tool `context`.

    Args:
        capability: returns what the session offers under a name, such as `context.compact`, or None; asked at each
            call, because tools may be mounted before the context.
    """

    name = NAME
    description = _DESCRIPTION

    def __init__(self, capability: Callable[[str], Any]) -> None:
        self._capability = capability

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the input."""
        return {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
                "keep": {"type": "string", "description": "With compact: what the summary must not lose, in words."},
                "messages": {"type": "string", "description": 'With pin and unpin: numbers such as "12" or "3, 7-9".'},
            },
            "required": ["action"],
            "additionalProperties": False,
        }

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        """What was done, in one or two lines of plain text, or an error that says what to do instead."""
        try:
            asked = ContextRequest.from_input(input)
            text = await self._do(asked)
        except SteeringError as error:
            return ToolResult(success=False, output=f"Error: {error}", error={"type": "context", "message": str(error)})
        return ToolResult(success=True, output=text)

    async def _do(self, asked: ContextRequest) -> str:
        if asked.action == "status":
            return await self._status()
        if asked.action == "compact":
            saved = await self._call("compact", *([asked.keep] if asked.keep else []))
            done = f"Compacted: {saved:,} tokens saved." if saved > 0 else _NOTHING
            return f"{done} {await self._use()}"
        if asked.action == "undo":
            grown = await self._call("undo")
            return f"The last compaction is taken back: {grown:,} tokens more. {await self._use()}"
        numbers = asked.numbers()
        pinned = await self._call(asked.action, *([] if numbers is None else [numbers]))
        return _pinned(pinned)

    async def _status(self) -> str:
        told = await self._call("statistics")
        lines = [_used(told)]
        if told.summaries:
            code = f", {told.digests} of them by code" if told.digests else ""
            lines.append(
                f"{counted(told.summaries, 'summary', 'summaries')} stand for older messages{code}; "
                f"{counted(told.boundaries, 'compaction', 'compactions')} so far."
            )
        else:
            lines.append("Nothing is summarised yet.")
        if (preview := self._capability("context.preview")) is not None:
            coming = (await preview()).messages
            if coming is not None:
                lines.append(f"A compaction now would summarise messages {coming[0]} to {coming[1]}.")
        return "\n".join(lines)

    async def _use(self) -> str:
        return _used(await self._call("statistics"))

    async def _call(self, name: str, *arguments: Any) -> Any:
        work = self._capability(f"context.{name}")
        if work is None:
            raise SteeringError(f"the context of this session cannot {name}; tell the user so and continue without it")
        return await work(*arguments)


_NOTHING = "Nothing was compacted: the newest messages are kept as they are, and nothing else is long enough."


def _used(told: Any) -> str:
    if not told.budget:
        return f"The next request holds {told.view_tokens:,} tokens; its limit is not known yet."
    share = told.view_tokens / told.budget
    return f"The next request holds {told.view_tokens:,} of {told.budget:,} tokens ({share:.0%})."


def _pinned(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return "No message is pinned."
    more = f" and {len(numbers) - _NAMED:,} more" if len(numbers) > _NAMED else ""
    named = ", ".join(map(str, numbers[:_NAMED]))
    return f"Pinned {'message' if len(numbers) == 1 else 'messages'}: {named}{more}. They stay word for word."


async def mount(coordinator: Any) -> None:
    """Mount the tool; the context module does it with `context_tool: true`."""
    await coordinator.mount("tools", ContextTool(coordinator.get_capability), name=NAME)
