"""The view: the rows of a request, kept up to date as the history grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_summarize.core.entries import group_entries, pinned_groups
from context_summarize.core.frames import opening_row
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.view_state import ViewState
from context_summarize.messages.copying import Shape, copy_json, copy_shaped, shape_of
from context_summarize.messages.pairs import opens_conversation
from context_summarize.messages.rows import JsonRow
from context_summarize.tokens.measure import Count, measure


class View:
    """The rows of one view state, kept up to date as the history grows: closed groups are converted once.

    `rows()` copies what it hands out down to its content blocks.
    """

    def __init__(self, history: History, state: ViewState, count: Count, *, factory: bool) -> None:
        self.state = state
        self.factory = factory
        self._history = history
        self._count = count
        self._rows: list[JsonRow] = []
        self._shapes: list[Shape] = []
        self._sizes: list[int] = []
        self._open: tuple[int, list[tuple[JsonRow, int]]] = (-1, [])
        """Version of the history, and the rows of its open call then."""
        self.tokens = 0
        self._next_group = history.group_position(state.frontier_row)
        self._settled = not state.boundaries
        for row, size in self._head():
            self._append(row, size)

    def _head(self) -> Iterator[tuple[JsonRow, int]]:
        """Nodes in order, each with the pins of its range before it."""
        state, history = self.state, self._history
        pins = pinned_groups(history, state.frontier_row, state.frontier, state.newest_user, factory=self.factory)
        for shown in state.nodes:
            end = history.rendered_group(shown.node.end_group - 1).end
            while pins and pins[0].start < end:
                yield from self._group(pins.pop(0))
            yield shown.row, shown.tokens
        for group in pins:
            yield from self._group(group)

    def _group(self, group: Group) -> list[tuple[JsonRow, int]]:
        entries = group_entries(self._history, group, self.state, self._count, factory=self.factory)
        return [(row, size) for _, row, size in entries]

    def _append(self, row: JsonRow, size: int) -> None:
        if not self._settled and row["role"] not in ("system", "developer"):
            self._settled = True
            if not opens_conversation(row):
                self._append(*self._opening())
        self._rows.append(row)
        self._shapes.append(shape_of(row))
        self._sizes.append(size)
        self.tokens += size

    def _opening(self) -> tuple[JsonRow, int]:
        row = opening_row()
        return row, measure(row, self._count)

    def refresh(self) -> None:
        """Take in the groups that have closed since the last time."""
        groups = self._history.groups
        while self._next_group < len(groups):
            for row, size in self._group(groups[self._next_group]):
                self._append(row, size)
            self._next_group += 1

    def _open_rows(self) -> list[tuple[JsonRow, int]]:
        version = self._history.version
        if self._open[0] != version:
            self._open = (version, self._make_open_rows())
        return self._open[1]

    def _make_open_rows(self) -> list[tuple[JsonRow, int]]:
        rows = [entry for group in self._history.open_groups() for entry in self._group(group)]
        if rows and not self._settled and not opens_conversation(rows[0][0]):
            return [self._opening(), *rows]
        return rows

    def size(self) -> int:
        """Tokens of the view, system prompt aside."""
        self.refresh()
        return self.tokens + sum(size for _, size in self._open_rows())

    def rows(self, system_prompt: str | None) -> list[JsonRow]:
        """A copy of the rows, system prompt first."""
        self.refresh()
        head = [{"role": "system", "content": system_prompt}] if system_prompt else []
        closed = map(copy_shaped, self._rows, self._shapes)
        return [*head, *closed, *(copy_json(row) for row, _ in self._open_rows())]

    def __len__(self) -> int:
        self.refresh()
        return len(self._rows) + len(self._open_rows())

    def largest(self, system_tokens: int = 0, most: int = 3) -> list[dict[str, Any]]:
        """The largest rows, as events name them: position in the view, role, tokens."""
        self.refresh()
        head = [{"row": 0, "role": "system", "tokens": system_tokens}] if system_tokens else []
        rows = [*zip(self._rows, self._sizes, strict=True), *self._open_rows()]
        found = [
            {"row": at, "role": row["role"], "tokens": size} for at, (row, size) in enumerate(rows, start=len(head))
        ]
        return sorted([*head, *found], key=lambda item: -item["tokens"])[:most]
