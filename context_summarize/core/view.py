"""The view: the rows of a request, kept up to date as the history grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from context_summarize.core.frames import no_summary, opening_row
from context_summarize.core.shown_groups import Entry, ShownGroups
from context_summarize.core.view_state import ViewState
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.tokens.measure import measure


class View:
    """The rows of one view state. Closed groups are taken in once; `rows()` copies what it hands out."""

    def __init__(self, state: ViewState, groups: ShownGroups) -> None:
        self.state = state
        self.groups = groups
        self._closed: list[Entry] = []
        self._open: list[Entry] = []
        """The calls at the end that may still get results, and those that they have."""
        self._closed_tokens = 0
        self.system_tokens = 0
        """Those of the tokens that stand in system rows, as `tokens()` has found last: providers send them apart."""
        self._next_group = groups.history.group_position(state.frontier_row)
        self._extend(self._head())
        self.left = self._closed_tokens
        """Those of the tokens that the last compaction has left, as `tokens()` has found last."""
        self.head_rows = len(self._closed)
        """How many rows stand for what is summarised: nodes, and the pins beside them."""

    def _head(self) -> Iterator[Entry]:
        """Nodes in order, each with the pins of its range before it, and the row of notes."""
        state, history, notes = self.state, self.groups.history, self.state.notes
        pins = self.groups.pins(state)
        if state.compactions and not history.opens_with_user():
            yield self._own(opening_row())
        if state.is_bare:
            for group in pins:
                yield from self.groups.entries(group, state)
            yield self._own(no_summary(history, state.frontier))
            return
        for at, shown in enumerate(state.shown):
            if notes is not None and notes.after == at:
                yield Entry(None, notes.row, notes.tokens)
            end = history.rendered_group(shown.node.end_group - 1).end
            while pins and pins[0].start < end:
                yield from self.groups.entries(pins.pop(0), state)
            yield Entry(None, shown.row, shown.tokens)
        if notes is not None and notes.after >= len(state.shown):
            yield Entry(None, notes.row, notes.tokens)
        for group in pins:
            yield from self.groups.entries(group, state)

    def _own(self, row: JsonRow) -> Entry:
        return Entry(None, row, measure(row, self.groups.count))

    def _extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._closed.append(entry)
            self._closed_tokens += entry.tokens
            if entry.row["role"] == "system":
                self.system_tokens += entry.tokens

    def tokens(self) -> int:
        """Tokens of the view with what has come since the last time, system prompt aside."""
        history = self.groups.history
        while self._next_group < len(history.groups):
            group = history.groups[self._next_group]
            self._next_group += 1
            self._extend(self.groups.entries(group, self.state))
            if group.start < self.state.rows_at_compaction:
                self.left = self._closed_tokens
        self._open = [entry for group in history.open_groups for entry in self.groups.entries(group, self.state)]
        return self._closed_tokens + sum(entry.tokens for entry in self._open)

    def entries(self) -> list[Entry]:
        """The rows with where each comes from. They are shared with the view: only to be read."""
        self.tokens()
        return [*self._closed, *self._open]

    @property
    def open_rows(self) -> int:
        """How many rows at the end belong to calls that may still get their results."""
        return len(self._open)

    def rows(self, system_prompt: str | None) -> list[JsonRow]:
        """A copy of the rows, system prompt first."""
        head = [{"role": "system", "content": system_prompt}] if system_prompt else []
        return [*head, *(copy_json(entry.row) for entry in self.entries())]

    def __len__(self) -> int:
        return len(self.entries())

    def largest(self, system_tokens: int = 0, most: int = 3) -> list[dict[str, Any]]:
        """The largest rows, as events name them: position in the view, role, tokens."""
        head = [{"row": 0, "role": "system", "tokens": system_tokens}] if system_tokens else []
        found = [
            {"row": at, "role": entry.row["role"], "tokens": entry.tokens}
            for at, entry in enumerate(self.entries(), start=len(head))
        ]
        return sorted([*head, *found], key=lambda item: -item["tokens"])[:most]
