"""The contents of a recording, without playing it: rows, tokens, broken pairs, tools, the largest messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from context_summarize.core.log import Log
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.result import message_numbers, named
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

Line: TypeAlias = dict[str, object]
"""A line of a table, by its columns."""
_LARGEST = 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """The contents of a recording. Sizes are in tokens."""

    rows: int
    messages: int
    """Rows that a summariser reads; the other rows belong to the host, such as system rows."""
    tokens: int
    unanswered_calls: list[str]
    """Calls without a result before the next message, each as `tool in message 7`."""
    orphan_results: int
    """Results that answer no call."""
    roles: list[Line]
    tools: list[Line]
    """For each tool, in the order of first calls: calls, results, and the tokens of the results."""
    largest: list[Line]
    """The messages that take the most tokens."""


def inspect_rows(rows: Sequence[JsonRow], *, progress: Callable[[int], None] = lambda rows: None) -> Inspection:
    """Reads the rows of a recording once. Calls no provider, and writes nothing.

    Args:
        progress: called after every row with the number of rows read so far.
    """
    history = Log(count := TokenCounter().count)
    for number, row in enumerate(rows, 1):
        history.add(analyse(row), measure(row, count))
        progress(number)
    groups = [*history.groups, *history.open_groups]
    answered = {at: call.name for group in groups for at, call in group.answers}
    numbers = message_numbers(rows)
    results = sum(len(row.result_ids) for row in history.rows)
    return Inspection(
        rows=len(rows),
        messages=sum(row.rendered for row in history.rows),
        tokens=sum(history.tokens),
        unanswered_calls=[
            f"{call.name or 'a call'} in {named(numbers, at.start + 1)}" for at in groups for call in at.missing
        ],
        orphan_results=results - sum(len(group.answers) for group in groups),
        roles=_roles(history),
        tools=_tools(history, answered),
        largest=_largest(history, answered, numbers),
    )


def _roles(history: Log) -> list[Line]:
    """Returns a line for each role, in the order of their first rows."""
    sizes: dict[str, list[int]] = {}
    for row, size in zip(history.rows, history.tokens, strict=True):
        sizes.setdefault(row.role, []).append(size)
    return [{"role": role, "rows": len(found), "tokens": sum(found)} for role, found in sizes.items()]


def _tools(history: Log, answered: Mapping[int, str]) -> list[Line]:
    calls = Counter(call.name for row in history.rows for call in row.calls)
    results, tokens = Counter(answered.values()), Counter[str]()
    for at, name in answered.items():
        tokens[name] += history.tokens[at]
    return [
        {"tool": name, "calls": made, "results": results[name], "tokens": tokens[name]} for name, made in calls.items()
    ]


def _largest(history: Log, answered: Mapping[int, str], numbers: Sequence[int | None]) -> list[Line]:
    order = sorted(range(len(history)), key=lambda at: -history.tokens[at])[:_LARGEST]
    return [
        {
            "message": numbers[at] or "",
            "tokens": history.tokens[at],
            "role": history.rows[at].role,
            "tool": answered.get(at, ""),
        }
        for at in order
    ]
