"""Groups, the smallest runs of rows that are never split, and their rows as the summariser reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.messages.reading import is_of_user
from context_summarize.messages.rows import Call, JsonRow, Row
from context_summarize.messages.text import own_texts, render_parts
from context_summarize.redaction import Redact, redact_known
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.rendered import RenderedRow


@dataclass(frozen=True, slots=True)
class Group:
    """A run of history rows that is never split: [start, end)."""

    start: int
    end: int
    rendered: bool
    """True when at least one of its rows is rendered; a group of several rows always is."""
    user: bool
    """True for the single row of a user message."""
    answers: tuple[tuple[int, Call], ...] = ()
    """(row, call) for each result that answers a call of the group, in order; other results are orphans."""
    open: bool = False
    """True while its calls may still get results."""
    missing: tuple[Call, ...] = ()
    """Abandoned calls: a user or assistant row came before their result."""


class Grouper:
    """Turns rows, fed one at a time, into closed groups. A closed group never changes again."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Row]] = []
        self._calls: dict[str, list[Call]] = {}
        """The calls without a result, by id: there may be thousands."""
        self._answers: list[tuple[int, Call]] = []

    def feed(self, index: int, row: Row) -> list[Group]:
        """Returns the groups that this row closes, oldest first; most often one, the row itself."""
        if not self._open:
            return self._start(index, row)
        if row.rendered and row.result_ids:
            self._open.append((index, row))
            for call_id in row.result_ids:
                if calls := self._calls.get(call_id):  # a result belongs to the nearest earlier call with its id
                    self._answers.append((index, calls.pop()))
                    if not calls:
                        del self._calls[call_id]
            return [] if self._calls else [self._close(index + 1)]
        if row.rendered and row.role in ("user", "assistant"):
            return [*self._abandon(), *self._start(index, row)]
        self._open.append((index, row))
        return []

    def open_groups(self) -> list[Group]:
        """Returns the open run as a group, without closing it: its calls may still get results."""
        if not self._open:
            return []
        return [Group(self._open[0][0], self._open[-1][0] + 1, True, False, tuple(self._answers), open=True)]

    def _abandon(self) -> list[Group]:
        """Closes the open run: its calls without a result are abandoned."""
        rows = self._open
        last = self._answers[-1][0] if self._answers else rows[0][0]
        closed = self._close(last + 1)
        return [closed, *(_single(index, row) for index, row in rows if index > last)]

    def _start(self, index: int, row: Row) -> list[Group]:
        if not row.calls:
            return [_single(index, row)]
        self._open, self._calls, self._answers = [(index, row)], {}, []
        for call in row.calls:
            self._calls.setdefault(call.id, []).append(call)
        return []

    def _close(self, end: int) -> Group:
        missing = tuple(call for calls in self._calls.values() for call in calls)
        group = Group(self._open[0][0], end, True, False, tuple(self._answers), missing=missing)
        self._open, self._calls, self._answers = [], {}, []
        return group


def answered_calls(group: Group) -> dict[int, list[Call]]:
    """Returns the calls that each row of a group answers."""
    found: dict[int, list[Call]] = {}
    for index, call in group.answers:
        found.setdefault(index, []).append(call)
    return found


def _single(index: int, row: Row) -> Group:
    return Group(index, index + 1, row.rendered, row.user)


def render_group(
    rows: Sequence[Row],
    group: Group,
    *,
    number: int,
    redact: Redact | None = None,
    first_user: JsonRow | None = None,
) -> list[RenderedRow]:
    """Returns the rendered rows of one group, numbered from `number`.

    `rows` is the whole history, and `first_user` its first user message.
    """
    answered = answered_calls(group)
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = {call.id: call.name for call in answered.get(index, ())}
        parts = render_parts(row, names, group.missing if index == group.start else ())
        search = None if row.is_clean and redact is redact_known else redact
        text = escape_marks(_joined("\n", [search(part) if search else part for part in parts], search))
        own = _own_text(row, first_user, text, search) if row.role == "user" else None
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        is_answer = len(answered.get(index, ())) == 1
        out.append(RenderedRow(number + len(out), row.role, name, text, own, len(row.calls), is_answer))
    return out


def _own_text(row: Row, first_user: JsonRow | None, text: str, redact: Redact | None) -> str:
    """Returns `RenderedRow.own`. If the content is one text, that is the row's text."""
    if not is_of_user(row.raw, first_user):
        return ""
    said = own_texts(row)
    if said is None:
        return text
    return _joined("\n\n", [redact(part) if redact else part for part in said if part], redact)


def _header_name(name: object, redact: Redact | None) -> str | None:
    """Returns a tool's name as a header shows it: on one line, without secrets."""
    if not isinstance(name, str):
        return None
    return " ".join((redact(name) if redact else name).split()) or None


def group_hash(rendered: Sequence[RenderedRow]) -> bytes:
    """Returns the hash of one group's rendered rows, uncut; the running hash is made of these."""
    digest = hashlib.sha256()
    for row in rendered:
        for part in (row.role, row.name or "", row.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.digest()


def _joined(sign: str, texts: Sequence[str], redact: Redact | None) -> str:
    """Returns the texts of one row as one. A secret that is split over two of them is found only now."""
    text = sign.join(texts)
    return redact(text) if redact and len(texts) > 1 else text
