"""The rows that a view shows of one group: a call, its results right after it, then what stood between."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from context_summarize.core.frames import row_hint
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.short_rows import shortened_row
from context_summarize.messages.pairs import opens_with_user
from context_summarize.messages.reading import is_hook
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.view_rows import continues, synthetic_result, view_row, without_continuation
from context_summarize.tokens.measure import Count, measure


class Entry(NamedTuple):
    """One row of a view."""

    origin: int | None
    """Row of the history; None for a row that is made up to keep the view valid."""
    row: JsonRow
    tokens: int


def is_hidden(history: History, index: int, hides_system: bool) -> bool:
    """Stored system rows of the host are hidden while a system prompt factory is set; hook rows are not."""
    row = history.rows[index]
    return hides_system and row.role == "system" and not is_hook(row.raw)


def group_entries(
    history: History,
    group: Group,
    count: Count,
    *,
    hides_system: bool = False,
    shortened: Mapping[int, int] | None = None,
    rows_at_compaction: int = 0,
) -> list[Entry]:
    """What a view shows of one group: the call, all its results right after it, then what stood between.

    What stands between in an open group (nothing has followed its calls yet) is held back until the group closes: the
    results still to come would push it down, and the earlier view would be no prefix of the later one.

    Args:
        shortened: history row → tokens kept of it.
        rows_at_compaction: rows before this one lose their continuation id.
    """
    answers = answers_by_row(group)
    first: list[Entry] = []
    results: list[Entry] = []
    between: list[Entry] = []
    for index in range(group.start, group.end):
        if is_hidden(history, index, hides_system):
            continue
        row = view_row(history.rows[index], answers.get(index))
        if row is None:
            continue
        if index < rows_at_compaction:
            row = without_continuation(row)
        place = first if index == group.start else results if index in answers else between
        keep = shortened.get(index) if shortened else None
        place.append(_sized(history, index, row, keep, count))
    synthetic = [Entry(None, row, measure(row, count)) for row in map(synthetic_result, group.missing)]
    return [*first, *results, *synthetic, *([] if group.open else between)]


def _sized(history: History, index: int, row: JsonRow, keep: int | None, count: Count) -> Entry:
    """The entry of a row, shortened to about `keep` tokens if it is longer."""
    size = history.count_row(index, count)
    if keep is None or size <= keep:
        return Entry(index, row, size)
    hint = row_hint(history, index) if history.recall else ""
    short, tokens = shortened_row(row, size, keep, count, hint)
    return Entry(index, short, tokens)


def short_entry(history: History, group: Group, index: int, keep: int, count: Count) -> Entry | None:
    """One row of a group shortened to about `keep` tokens; None if no view shows it."""
    first, end = (bisect_left(group.answers, (at,)) for at in (index, index + 1))
    row = view_row(history.rows[index], [call_id for _, call_id in group.answers[first:end]])
    return None if row is None else _sized(history, index, row, keep, count)


def answers_by_row(group: Group) -> dict[int, list[str]]:
    """Ids of the calls that each row of a group answers."""
    answers: dict[int, list[str]] = {}
    for index, call_id in group.answers:
        answers.setdefault(index, []).append(call_id)
    return answers


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """One group, unshortened."""

    entries: tuple[Entry, ...]
    tokens: int
    """Of all entries."""
    opens: bool | None
    """Whether a view may open with the group; None if it holds no row of the conversation."""
    chained: bool
    """True if a row of it carries a continuation id, which rows from before a compaction lose."""


def shown_group(entries: list[Entry]) -> ShownGroup:
    """A group of these entries."""
    return ShownGroup(
        tuple(entries),
        sum(entry.tokens for entry in entries),
        opens_with_user(entry.row for entry in entries),
        any(continues(entry.row) for entry in entries),
    )
