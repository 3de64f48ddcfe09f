"""What a reader of a recording should know of it: odd parts, calls without a result, results without a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from context_summarize.core.groups import Grouper
from context_summarize.messages.reading import analyse, block_type, entry_call
from context_summarize.messages.rows import TEXT_BLOCKS, Call, JsonRow
from context_summarize.replay.numbering import message_numbers, named
from context_summarize.transcript.wording import counted

_NAMED = 3
"""Calls that a remark names."""


def remarks_on(rows: Sequence[JsonRow]) -> tuple[str, ...]:
    """One sentence for each kind of thing that the views of these rows show otherwise than the rows do."""
    grouper, numbers = Grouper(), message_numbers(rows)
    read = [analyse(row) for row in rows]
    groups = [*chain.from_iterable(grouper.feed(at, row) for at, row in enumerate(read)), *grouper.open_groups()]
    unanswered = [(call, named(numbers, group.start + 1)) for group in groups for call in group.missing]
    results = sum(len(row.result_ids) for row in read if row.rendered)
    without_call = results - sum(len(group.answers) for group in groups)
    return tuple(_remarks(unanswered, without_call))


def _remarks(unanswered: Sequence[tuple[Call, str]], without_call: int) -> Iterator[str]:
    if unanswered:
        first = ", ".join(f"{call.name or 'a call'} in {where}" for call, where in unanswered[:_NAMED])
        more = f" and {len(unanswered) - _NAMED:,} more" if len(unanswered) > _NAMED else ""
        yield (
            f"{counted(len(unanswered), 'tool call')} had no result: {first}{more}; "
            "the requests hold a result that says so, added by code"
        )
    if without_call > 0:
        it = "it" if without_call == 1 else "them"
        yield f"{counted(without_call, 'tool result')} had no call: summaries read {it} as text, no request holds {it}"


def odd_part(row: JsonRow) -> str | None:
    """What is malformed in a row, as `content is a number, …`; None for a row that is read whole."""
    content, calls = row.get("content"), row.get("tool_calls")
    if row["role"] != "tool":  # a result may be data of any kind
        if not isinstance(content, str | list | tuple | None):
            return f"content is {_kind(content)}, neither text nor a list of blocks"
        for block in content if isinstance(content, list | tuple) else ():
            if isinstance(block, str):
                continue
            if not isinstance(block, dict):
                return f"a block of content is {_kind(block)}, not an object with a type"
            if not block_type(block):
                return "a block of content has no type"
            if block_type(block) in TEXT_BLOCKS and not isinstance(block.get("text"), str):
                return "a text block has no text"
    if not isinstance(calls, list | tuple | None):
        return f"tool_calls is {_kind(calls)}, not a list"
    if any(entry_call(entry) is None for entry in calls or ()):
        return "an entry of tool_calls is no call with an id"
    return None


def remarks_on_odd(odd: Sequence[str]) -> tuple[str, ...]:
    """A sentence on messages with odd parts, each given as its place and what is odd; none if there are none."""
    if not odd:
        return ()
    are = "1 message is malformed" if len(odd) == 1 else f"{len(odd):,} messages are malformed"
    first = "" if len(odd) == 1 else "the first is "
    return (f"{are} ({first}{odd[0]}); what is no text is read as JSON, what is no call is left out",)


def _kind(value: Any) -> str:
    """A value of JSON by its kind, with its article."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
