"""The plain baseline: the system prompt and the newest rows, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from .base import Row, Terms


class KeepLast:
    """At the trigger, drops the oldest groups until the newest `keep` rows are left, and more while that is too long.

    A group is an assistant row with calls and what follows up to the last of their results, or any other single row.
    """

    packages: tuple[str, ...] = ()

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._rows: list[Row] = []

    async def add(self, row: Row) -> None:
        if not self._terms.is_system_prompt(row):
            self._rows.append(row)

    async def view(self) -> list[Row]:
        terms = self._terms
        system = terms.system_rows
        if terms.size([*system, *self._rows]) >= terms.trigger_tokens:
            self._rows = newest_groups(self._rows, terms.keep)
            while terms.size([*system, *self._rows]) > terms.budget:
                fewer = newest_groups(self._rows, len(self._rows) - 1, at_most=True)
                if not fewer:
                    break
                self._rows = fewer
        return [*system, *self._rows]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    async def close(self) -> None:
        pass


def newest_groups(rows: Sequence[Row], keep: int, *, at_most: bool = False) -> list[Row]:
    """The newest whole groups that hold at least `keep` rows, or at most that many."""
    starts = [at for at, row in enumerate(rows) if row["role"] != "tool"]
    wanted = len(rows) - keep
    fitting = [at for at in starts if at >= wanted] if at_most else [at for at in starts if at <= wanted]
    if not fitting:
        return [] if at_most else list(rows)
    return list(rows[min(fitting) if at_most else max(fitting) :])
