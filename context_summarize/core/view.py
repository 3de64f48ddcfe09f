"""The view: the rows of a request, kept up to date as the history grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from context_summarize.core.entries import Entry, ShownGroup, group_entries
from context_summarize.core.frames import opening_row
from context_summarize.core.groups import Group
from context_summarize.core.history import History
from context_summarize.core.shown_groups import ShownGroups
from context_summarize.core.view_state import ViewState
from context_summarize.messages.json_text import copy_json
from context_summarize.messages.pairs import opens_conversation
from context_summarize.messages.rows import SYSTEM_ROLES, JsonRow
from context_summarize.tokens.measure import Count, measure


class View:
    """The rows of one view state. Closed groups are converted once; `rows()` copies what it hands out.

    Args:
        groups: of the same history; the view takes over what is converted there.
    """

    def __init__(self, history: History, state: ViewState, groups: ShownGroups, count: Count) -> None:
        self.state = state
        self.groups = groups
        self._history = history
        self._count = count
        self._entries: list[Entry] = []
        self._open: tuple[int, list[Entry]] = (-1, [])
        """Length of the history, and the rows of its open call then."""
        self._tokens = 0
        self._system_tokens = 0
        self._settled = not state.compactions
        """True once the view holds a row of the conversation, or need not open with a user message."""
        groups.advance()
        self._next_group = max(history.group_position(state.frontier_row), groups.first)
        self._extend(self._head())
        self.head_rows = len(self._entries)
        """How many rows stand for what is summarised: nodes, and the pins beside them."""

    def _head(self) -> Iterator[Entry]:
        """Nodes in order, each with the pins of its range before it."""
        state, history = self.state, self._history
        pins = self.groups.pins(state.frontier_row, state.frontier, state.newest_user, state.pinned)
        for at, shown in enumerate(state.shown):
            if state.notes is not None and state.notes.after == at:
                yield Entry(None, state.notes.row, state.notes.tokens)
            end = history.rendered_group(shown.node.end_group - 1).end
            while pins and pins[0].start < end:
                group = pins.pop(0)
                yield from self._group(group, self.groups.pinned(group))
            yield Entry(None, shown.row, shown.tokens)
        if state.notes is not None and state.notes.after >= len(state.nodes):
            yield Entry(None, state.notes.row, state.notes.tokens)
        for group in pins:
            yield from self._group(group, self.groups.pinned(group))

    def _group(self, group: Group, shown: ShownGroup) -> tuple[Entry, ...] | list[Entry]:
        """What the view shows of a group: as it is, or with shortened rows and without continuation ids."""
        state = self.state
        if not (shown.chained and group.start < state.rows_at_compaction):
            if not state.shortened or not any(item.origin in state.shortened for item in shown.entries):
                return shown.entries
            return [self._shortened(item) for item in shown.entries]
        return group_entries(
            self._history,
            group,
            self._count,
            hides_system=self.groups.hides_system,
            shortened=state.shortened,
            rows_at_compaction=state.rows_at_compaction,
        )

    def _shortened(self, item: Entry) -> Entry:
        keep = None if item.origin is None else self.state.shortened.get(item.origin)
        if item.origin is None or keep is None or item.tokens <= keep:
            return item
        return self.groups.short_entry(item.origin, keep) or item

    def _extend(self, items: Iterable[Entry]) -> None:
        for item in items:
            if not self._settled and item.row["role"] not in SYSTEM_ROLES:
                self._settled = True
                if not opens_conversation(item.row):
                    self._extend([self._opening()])
            self._entries.append(item)
            self._tokens += item.tokens
            if item.row["role"] == "system":
                self._system_tokens += item.tokens

    def _opening(self) -> Entry:
        row = opening_row()
        return Entry(None, row, measure(row, self._count))

    def refresh(self) -> None:
        """Take in the groups that have closed since the last time."""
        self.groups.advance()
        groups = self._history.groups
        for at in range(self._next_group, len(groups)):
            self._extend(self._group(groups[at], self.groups.closed(at)))
        self._next_group = max(self._next_group, len(groups))

    def _open_entries(self) -> list[Entry]:
        rows = len(self._history)
        if self._open[0] != rows:
            self._open = (rows, self._make_open_entries())
        return self._open[1]

    def _make_open_entries(self) -> list[Entry]:
        shown = self.groups.open_group()
        if shown is None:
            return []
        found = list(self._group(self._history.open_groups()[0], shown))
        if found and not self._settled and not opens_conversation(found[0].row):
            return [self._opening(), *found]
        return found

    @property
    def open_rows(self) -> int:
        """How many rows at the end belong to calls that may still get their results."""
        return len(self._open_entries())

    def entries(self) -> list[Entry]:
        """The rows with where each comes from. They are shared with the view: only to be read."""
        self.refresh()
        return [*self._entries, *self._open_entries()]

    def tokens(self) -> int:
        """Tokens of the view, system prompt aside."""
        self.refresh()
        return self._tokens + sum(item.tokens for item in self._open_entries())

    def system_tokens(self) -> int:
        """Those of its tokens that stand in system rows: providers send them apart from the conversation."""
        self.refresh()
        return self._system_tokens

    def rows(self, system_prompt: str | None) -> list[JsonRow]:
        """A copy of the rows, system prompt first."""
        self.refresh()
        head = [{"role": "system", "content": system_prompt}] if system_prompt else []
        return [*head, *(copy_json(item.row) for item in [*self._entries, *self._open_entries()])]

    def __len__(self) -> int:
        self.refresh()
        return len(self._entries) + len(self._open_entries())

    def largest(self, system_tokens: int = 0, most: int = 3) -> list[dict[str, Any]]:
        """The largest rows, as events name them: position in the view, role, tokens."""
        self.refresh()
        head = [{"row": 0, "role": "system", "tokens": system_tokens}] if system_tokens else []
        found = [
            {"row": at, "role": item.row["role"], "tokens": item.tokens}
            for at, item in enumerate([*self._entries, *self._open_entries()], start=len(head))
        ]
        return sorted([*head, *found], key=lambda item: -item["tokens"])[:most]
