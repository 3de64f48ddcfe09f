"""Sizes of groups as a view would show them, shortened rows included; counted once and remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from context_summarize.core.entries import group_entries
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.view_state import ViewState
from context_summarize.messages.pairs import opens_with_user
from context_summarize.tokens.measure import Count


@dataclass(frozen=True, slots=True)
class _Shown:
    """One group, unshortened."""

    rows: tuple[tuple[int | None, int], ...]
    """(history row, tokens) of each row shown; None for a synthetic result."""
    tokens: int
    """Of all of them."""
    opens: bool | None
    """Whether a view may open with it; None when it holds no row of the conversation."""


class Sizes:
    """What groups of one history take in a view, by the code that makes the view."""

    def __init__(self, history: History, count: Count) -> None:
        self._history = history
        self._count = count
        self._plain: dict[tuple[int, int, int, bool], _Shown] = {}
        self._short: dict[tuple[int, int, bool], int] = {}

    def forget_before(self, row: int) -> None:
        """Forget groups that start before this history row."""
        self._plain = {at: shown for at, shown in self._plain.items() if at[0] >= row}
        self._short = {at: size for at, size in self._short.items() if at[0] >= row}

    def _shown(self, group: Group, factory: bool) -> _Shown:
        at = (group.start, group.end, len(group.answers), factory)
        found = self._plain.get(at)
        if found is None:
            entries = group_entries(self._history, group, ViewState(), self._count, factory=factory)
            opens = opens_with_user(row for _, row, _ in entries)
            rows = tuple((index, size) for index, _, size in entries)
            found = self._plain[at] = _Shown(rows, sum(size for _, size in rows), opens)
        return found

    def opens(self, group: Group, *, factory: bool) -> bool | None:
        """Whether a view may open with this group; None when it holds no row of the conversation."""
        return self._shown(group, factory).opens

    def rows(self, group: Group, shortened: Mapping[int, int], *, factory: bool) -> list[tuple[int | None, int]]:
        """(history row, tokens) of each row that the group shows."""
        return [
            (index, self._size(group, index, size, shortened, factory))
            for index, size in self._shown(group, factory).rows
        ]

    def group(self, group: Group, shortened: Mapping[int, int], *, factory: bool) -> int:
        """Tokens of the group."""
        if shortened.keys().isdisjoint(range(group.start, group.end)):
            return self._shown(group, factory).tokens  # a plan asks for every group a hundred times
        return sum(size for _, size in self.rows(group, shortened, factory=factory))

    def _size(self, group: Group, index: int | None, size: int, shortened: Mapping[int, int], factory: bool) -> int:
        keep = None if index is None else shortened.get(index)
        if index is None or keep is None or size <= keep:
            return size
        at = (index, keep, factory)
        found = self._short.get(at)
        if found is None:
            state = ViewState(shortened={index: keep})
            entries = group_entries(self._history, group, state, self._count, factory=factory)
            found = self._short[at] = next(tokens for row, _, tokens in entries if row == index)
        return found
