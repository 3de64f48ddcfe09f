"""What a reader of a recording should know of it: calls without a result, results without a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from context_summarize.core.groups import Grouper
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call, JsonRow
from context_summarize.replay.numbering import message_numbers, named

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
            f"{_count(len(unanswered), 'tool call')} had no result: {first}{more}; "
            "the requests hold a result that says so, added by code"
        )
    if without_call > 0:
        it = "it" if without_call == 1 else "them"
        yield f"{_count(without_call, 'tool result')} had no call: summaries read {it} as text, no request holds {it}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"
