"""The contents of a recording, without playing it: rows, tokens, broken pairs, the largest messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.core.log import Log
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.result import message_numbers, named
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

_LARGEST = 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """The contents of a recording. Sizes are in tokens."""

    messages: int
    """Rows that a summariser reads; the other rows belong to the host, such as system rows."""
    tokens: int
    unanswered_calls: list[str]
    """Calls without a result before the next message, each as `tool in message 7`."""
    orphan_results: int
    """Results that answer no call."""
    roles: list[tuple[str, int, int]]
    """Each role with its rows and their tokens."""
    largest: list[tuple[str, int, str, str]]
    """The largest rows: number of the message, tokens, role, and tool of a result."""


def inspect_rows(rows: Sequence[JsonRow]) -> Inspection:
    """Reads the rows of a recording once. Calls no provider, and writes nothing."""
    history = Log(count := TokenCounter().count)
    for row in rows:
        history.add(analyse(row), measure(row, count))
    groups = [*history.groups, *history.open_groups]
    answered = {at: calls for group in groups for at, calls in group.answers.items()}
    sizes, names, numbers = history.tokens, [row.role for row in history.rows], message_numbers(rows)
    largest = sorted(range(len(rows)), key=lambda at: -sizes[at])[:_LARGEST]
    of_role = Counter[str]()
    for name, size in zip(names, sizes, strict=True):
        of_role[name] += size
    return Inspection(
        messages=sum(row.rendered for row in history.rows),
        tokens=sum(sizes),
        unanswered_calls=[
            f"{call.name or 'a call'} in {named(numbers, group.start + 1)}"
            for group in groups
            for call in group.missing
        ],
        orphan_results=sum(len(row.result_ids) for row in history.rows) - sum(map(len, answered.values())),
        roles=[(name, names.count(name), size) for name, size in of_role.items()],
        largest=[
            (f"{numbers[at] or ''}", sizes[at], names[at], answered[at][-1].name if at in answered else "")
            for at in largest
        ],
    )
