"""Records the views of a replay: each row once, and each view as what it changes of the view before it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, TypeAlias

from context_summarize.core.entries import Entry
from context_summarize.core.view import View
from context_summarize.core.view_state import ViewState
from context_summarize.messages.json_text import compact_json
from context_summarize.messages.rows import SOURCE, SYSTEM_ROLES, JsonRow
from context_summarize.session.conversation import Conversation
from context_summarize.tokens.measure import Count

RowKind: TypeAlias = Literal["system", "summary", "actions", "verbatim", "shortened", "made"]
"""`made`: a row of the module that keeps a view valid, such as a missing result."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """One row as views show it."""

    kind: RowKind
    row: JsonRow
    tokens: int
    message: int | None = None
    """Its number; None for a summary, and for a row without a number, such as a system row."""
    whole_tokens: int | None = None
    """Of a shortened row: the size of the whole."""
    span: tuple[int, int] | None = None
    """The messages that a summary, or the row of actions, tells of."""
    key: str | None = None
    """Key of the summary that it is."""


@dataclass(frozen=True, slots=True)
class ViewChange:
    """One view: the first `same` rows of the view before it, then the rows `added`, as positions in `Views.rows`."""

    same: int
    added: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Views:
    """All views of a replay."""

    rows: tuple[ShownRow, ...] = ()
    """Every row that a view has shown, once."""
    changes: tuple[ViewChange, ...] = ()
    """One for each request, in order."""
    unsent: tuple[tuple[int, ViewChange], ...] = ()
    """(request, counted from 1; the view that it would have sent without its compaction)."""

    def whole(self, requests: Collection[int]) -> dict[int, tuple[int, ...]]:
        """The rows of the views of these requests, counted from 1, as positions in `rows`."""
        return {number: tuple(view) for number, _, view in self._walk() if number in requests}

    def between(self, requests: Collection[int]) -> dict[int, ViewChange]:
        """The same as what each changes of the one before it among these requests."""
        found: dict[int, ViewChange] = {}
        same = 0
        for number, kept, view in self._walk():
            same = min(same, kept)
            if number in requests:
                found[number] = ViewChange(same, tuple(view[same:]))
                same = len(view)
        return found

    def _walk(self) -> Iterator[tuple[int, int, list[int]]]:
        """(request; rows kept from the one before; all rows, in one list that changes from request to request)."""
        view: list[int] = []
        for number, change in enumerate(self.changes, 1):
            view[change.same :] = change.added
            yield number, change.same, view


def change_between(earlier: Sequence[int], later: Sequence[int]) -> ViewChange:
    """What the later view changes of the earlier one."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(earlier, later, strict=False)))
    return ViewChange(same, tuple(later[same:]))


class ViewRecorder:
    """Writes the views down while a replay runs. It only reads the conversation.

    Args:
        numbers: the message number of each row that will be fed; None for a row without one.
    """

    def __init__(self, numbers: Sequence[int | None], count: Count) -> None:
        self._numbers = numbers
        self._count = count
        self._view: View | None = None
        self._rows: list[ShownRow] = []
        self._known: dict[int, int] = {}
        """Identity of a row → position. `_rows` keeps the rows alive, so that no identity is used again."""
        self._equal: dict[bytes, int] = {}
        """Hash of a row and its place → position."""
        self._changes: list[ViewChange] = []
        self._unsent: list[tuple[int, ViewChange]] = []
        self._last: tuple[int, ...] = ()
        self._before: tuple[int, ...] = ()

    def before(self, chat: Conversation) -> None:
        """A request is about to be made. Before the first one there is no view."""
        self._before = self._read(chat) if self._changes else ()

    def after(self, chat: Conversation, *, compacted: bool) -> None:
        """A request has been made."""
        shown = self._read(chat)
        self._changes.append(change_between(self._last, shown))
        if compacted:
            self._unsent.append((len(self._changes), change_between(self._last, self._before)))
        self._last = shown

    def views(self) -> Views:
        """All views so far."""
        return Views(tuple(self._rows), tuple(self._changes), tuple(self._unsent))

    def _read(self, chat: Conversation) -> tuple[int, ...]:
        view = self._view
        if view is None or view.state is not chat.view or view.groups is not chat.groups:
            view = self._view = View(chat.history, chat.view, chat.groups, self._count)
        return tuple(self._place(entry, view.state, chat) for entry in view.entries())

    def _place(self, entry: Entry, state: ViewState, chat: Conversation) -> int:
        known = self._known.get(id(entry.row))
        if known is not None:
            return known
        text = f"{entry.origin} {entry.tokens} {compact_json(entry.row)}"
        named = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        if named not in self._equal:
            self._equal[named] = len(self._rows)
            self._known[id(entry.row)] = len(self._rows)
            self._rows.append(self._shown(entry, state, chat))
        return self._equal[named]

    def _shown(self, entry: Entry, state: ViewState, chat: Conversation) -> ShownRow:
        row, origin = entry.row, entry.origin
        if origin is None:
            marks = row.get("metadata") or {}
            told = marks if marks.get("source") == SOURCE else {}
            span = told.get("messages") or told.get("actions")
            kind: RowKind = "summary" if "messages" in told else "actions" if "actions" in told else "made"
            return ShownRow(kind, row, entry.tokens, span=(span[0], span[1]) if span else None, key=told.get("key"))
        whole = chat.history.tokens[origin]
        number = self._numbers[origin]
        if origin in state.shortened and entry.tokens < whole:
            return ShownRow("shortened", row, entry.tokens, number, whole)
        return ShownRow("system" if row["role"] in SYSTEM_ROLES else "verbatim", row, entry.tokens, number)
