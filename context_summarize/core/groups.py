"""Groups, the smallest runs of rows that may not be cut; and their rows as the summariser is shown them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from context_summarize.messages.reading import is_of_user
from context_summarize.messages.rows import Call, JsonRow, Row
from context_summarize.messages.text import own_texts, render_parts
from context_summarize.redaction import Redact
from context_summarize.transcript.escaping import cut_middle, escape_marks
from context_summarize.transcript.rendered import RenderedRow


@dataclass(frozen=True, slots=True)
class Group:
    """The smallest run of history rows that may not be cut: [start, end)."""

    start: int
    end: int
    rendered: bool
    """True when at least one of its rows is rendered; a group of several rows always is."""
    user: bool
    """True for the single row of a user message."""
    answers: tuple[tuple[int, Call], ...] = ()
    """(row, call) of each result that answers a call of the group, in order; results not named here are orphans."""
    open: bool = False
    """True while calls of it may still be answered."""
    missing: tuple[Call, ...] = ()
    """Abandoned calls: passed over by a later user or assistant row before a result came."""


class Grouper:
    """Turns rows, fed one at a time, into closed groups. A closed group never changes again."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Row]] = []
        self._calls: dict[str, list[Call]] = {}
        """Those without a result by their ids: there may be thousands."""
        self._answers: list[tuple[int, Call]] = []

    def feed(self, index: int, row: Row) -> list[Group]:
        """Returns the groups that this row closes, oldest first; most often one, the row itself."""
        if not self._open:
            return self._start(index, row)
        if row.rendered and row.result_ids:
            self._open.append((index, row))
            for call_id in row.result_ids:
                if calls := self._calls.get(call_id):  # a result belongs to the nearest earlier one with its id
                    self._answers.append((index, calls.pop()))
                    if not calls:
                        del self._calls[call_id]
            return [] if self._calls else [self._close(index + 1)]
        if row.rendered and row.role in ("user", "assistant"):
            return [*self.pass_over(), *self._start(index, row)]
        self._open.append((index, row))
        return []

    def open_groups(self) -> list[Group]:
        """Returns the open run as it stands, without closing it: its calls may still be answered."""
        if not self._open:
            return []
        return [Group(self._open[0][0], self._open[-1][0] + 1, True, False, tuple(self._answers), open=True)]

    def pass_over(self) -> list[Group]:
        """Closes the open run as abandoned: calls without a result stay without one."""
        if not self._open:
            return []
        rows, last = self._open, self._answers[-1][0] if self._answers else self._open[0][0]
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


LARGE_SEGMENTS = 10
"""A row that is longer than so many segments is cut to that length."""
_MARGIN = 64_000
"""Characters next to what a cut keeps that are searched too: what is half a secret after the cut is known for one."""


def render_group(
    rows: Sequence[Row],
    group: Group,
    *,
    number: int,
    segment_tokens: int | None,
    redact: Redact | None = None,
    first_user: JsonRow | None = None,
) -> list[RenderedRow]:
    """Returns the rendered rows of one group, numbered from `number`.

    `rows` is the whole history, and `first_user` its first user message. A tool result longer than half a segment is
    cut to head and tail, and so is a row longer than ten segments; with `segment_tokens=None` nothing is cut.
    """
    searched = inf if segment_tokens is None else segment_tokens
    answered = answered_calls(group)
    places = {id(call): at for at, call in enumerate(rows[group.start].calls)}
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = {call.id: call.name for call in answered.get(index, ())}
        parts = render_parts(row, names, group.missing if index == group.start else ())
        found: list[str] = []
        search = partial(_watched, redact, found) if redact and row.clean_to < searched else None
        text = _text(parts, segment_tokens, search)
        own = _own_text(row, first_user, text, search) if row.role == "user" else None
        if search is not None and not found:
            row.clean_to = searched
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        answers = [places.get(id(call)) for call in answered.get(index, ())]
        of = answers[0] if len(answers) == 1 else None
        out.append(RenderedRow(number + len(out), row.role, name, text, own, len(row.calls), of))
    return out


def _watched(redact: Redact, found: list[str], text: str) -> str:
    """Returns the text without secrets; where it has some, that is noted in `found`."""
    clean = redact(text)
    if clean != text:
        found.append(clean)
    return clean


def _own_text(row: Row, first_user: JsonRow | None, text: str, redact: Redact | None) -> str:
    """See `RenderedRow.own`; of a row that was cut, all that is left of it."""
    if not is_of_user(row.raw, first_user):
        return ""
    said = own_texts(row)
    return (
        text if said is None else _joined("\n\n", [redact(part) if redact else part for part in said if part], redact)
    )


def _header_name(name: object, redact: Redact | None) -> str | None:
    """Returns a tool's name as a header shows it: on one line, whatever ends it has."""
    if not isinstance(name, str):
        return None
    return " ".join((redact(name) if redact else name).split()) or None


def cut_length(rendered: Sequence[RenderedRow]) -> int:
    """Length for cutting: the UTF-8 byte length of the rendered text; four bytes make one token."""
    # Header line, line break and blank line: the number's width is left out, so that a group has one length
    # wherever it stands.
    return sum(
        len(row.text.encode("utf-8", "surrogatepass"))
        + len(row.role)
        + len((row.name or "").encode("utf-8", "replace"))
        + 6
        for row in rendered
    )


def group_hash(rendered: Sequence[RenderedRow]) -> bytes:
    """Returns the part of one group in the running hash of the rendered rows, uncut."""
    digest = hashlib.sha256()
    for row in rendered:
        for part in (row.role, row.name or "", row.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.digest()


def _text(parts: Sequence[tuple[bool, str]], segment_tokens: int | None, redact: Redact | None) -> str:
    """Returns the text of a row from its parts, as (is a tool result, text)."""
    if segment_tokens is None:
        return escape_marks(_joined("\n", [redact(part) if redact else part for _, part in parts], redact))
    longest = segment_tokens * 4 * LARGE_SEGMENTS
    texts = [_cut(part, segment_tokens * 2 if result else longest, redact) for result, part in parts]
    text = _joined("\n", texts, redact)
    return escape_marks(cut_middle(text, longest) if len(texts) > 1 else text)


def _cut(text: str, limit_bytes: int, redact: Redact | None) -> str:
    """Returns the text without secrets, and then cut in its middle: half a secret is no longer known for one."""
    if redact is None:
        return cut_middle(text, limit_bytes)
    least = limit_bytes * 2 // 3 + _MARGIN
    size = least + _MARGIN
    if len(text) > 2 * size:
        ends = redact(text[:size]), redact(text[-size:])
        if min(map(len, ends)) >= least:  # a mark may be much shorter than what it stands for
            return cut_middle("".join(ends), limit_bytes, len(text))
    return cut_middle(redact(text), limit_bytes)


def _joined(sign: str, texts: Sequence[str], redact: Redact | None) -> str:
    """Returns the texts of one row as one; a secret that is split over two of them shows only then."""
    text = sign.join(texts)
    return redact(text) if redact and len(texts) > 1 else text
