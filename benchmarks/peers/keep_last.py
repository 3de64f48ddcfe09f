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
        terms, system = self._terms, self._terms.system_rows
        if terms.size([*system, *self._rows]) >= terms.trigger_tokens:
            starts = [at for at, row in enumerate(self._rows) if row["role"] != "tool"]
            newest = [at for at in starts if at <= len(self._rows) - terms.keep]
            self._rows = self._rows[max(newest, default=0) :]
            while self._rows and terms.size([*system, *self._rows]) > terms.budget:
                rest = (at for at, row in enumerate(self._rows) if at and row["role"] != "tool")
                self._rows = self._rows[next(rest, len(self._rows)) :]
        return [*system, *self._rows]

    def convert(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    async def close(self) -> None:
        pass
