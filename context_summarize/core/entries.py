"""The rows that a view shows of each group, and the groups that stay beside their summary."""

from __future__ import annotations

from context_summarize.core.frames import row_hint
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.shortening import shorten_row
from context_summarize.core.view_state import ViewState
from context_summarize.messages.reading import is_hook
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import compact_json
from context_summarize.messages.view_rows import synthetic_result, view_row, without_continuation
from context_summarize.tokens.measure import Count, measure


def hidden(history: History, index: int, factory: bool) -> bool:
    """Stored system rows of the host are hidden while a system prompt factory is set; hook rows are not."""
    row = history.rows[index]
    return factory and row.role == "system" and not is_hook(row.raw)


Entry = tuple[int | None, JsonRow, int]
"""(history row, view row, tokens); None for a synthetic result."""


def group_entries(
    history: History, group: Group, state: ViewState, count: Count, *, factory: bool = False
) -> list[Entry]:
    """What a view shows of one group: the call, all its results right after it, then what stood between.

    Of an open group (nothing has followed its calls yet) what stands between is held back until it closes: the
    results still to come would otherwise push it down, and the earlier view would be no prefix of the later one.
    """
    answers: dict[int, list[str]] = {}
    for index, call_id in group.answers:
        answers.setdefault(index, []).append(call_id)
    first: list[Entry] = []
    results: list[Entry] = []
    between: list[Entry] = []
    for index in range(group.start, group.end):
        if hidden(history, index, factory):
            continue
        row = view_row(history.rows[index], answers.get(index))
        if row is None:
            continue
        if index < state.rows_at_compaction:
            row = without_continuation(row)
        keep = state.shortened.get(index)
        history.count_rows(index, index + 1, count)
        size = history.tokens[index]
        if keep is not None and size > keep:
            row = shorten_row(row, keep, count, row_hint(history, index) if history.recall else "")
            size = measure(row, count)
        place = first if index == group.start else results if index in answers else between
        place.append((index, row, size))
    synthetic: list[Entry] = [(None, row, measure(row, count)) for row in map(synthetic_result, group.missing)]
    return [*first, *results, *synthetic, *([] if group.open else between)]


def pinned_groups(
    history: History, frontier_row: int, frontier: int, newest_user: int | None, *, factory: bool
) -> list[Group]:
    """Groups before the frontier that stand verbatim as well, in order; equal system rows once."""
    found: dict[int, Group] = {}
    seen: set[str] = set()
    for index in history.pins:
        if index >= frontier_row:
            break
        row = history.rows[index]
        if hidden(history, index, factory):
            continue
        if row.role in ("system", "developer"):
            text = compact_json([row.role, row.raw.get("content")])
            if text in seen:
                continue
            seen.add(text)
        group = history.group_of(index)
        if group is not None:
            found[group.start] = group
    users = [history.users[0] if history.users else None, newest_user]
    for ordinal in users:
        if ordinal is not None and ordinal < frontier:
            group = history.rendered_group(ordinal)
            found[group.start] = group
    return [found[start] for start in sorted(found)]


def first_user_row(history: History) -> int | None:
    """History row of the first user message."""
    return history.rendered_group(history.users[0]).start if history.users else None
