"""Rows as the summariser is shown them, group by group, and their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.core.groups import Group, answered_calls
from context_summarize.core.large_rows import LARGE_SEGMENTS, SEARCHED_WHOLE, evenly_cut, head_and_tail, is_longer
from context_summarize.messages.reading import is_of_user
from context_summarize.messages.rows import JsonRow, Row
from context_summarize.messages.text import own_texts, render_parts
from context_summarize.redaction import Redact
from context_summarize.transcript.escaping import cut_middle, escape_marks
from context_summarize.transcript.rows import RenderedRow


@dataclass(frozen=True, slots=True)
class _Limits:
    """Bytes of rows in a segment."""

    segment_tokens: int

    @property
    def result(self) -> int:
        """Longest tool result that is not cut."""
        return self.segment_tokens * 4 // 2

    @property
    def row(self) -> int:
        """Longest row that is read whole."""
        return self.segment_tokens * 4 * LARGE_SEGMENTS


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a row, redacted and escaped."""

    text: str
    own: str | None = None
    """See `RenderedRow.own`."""
    left_out: tuple[int, int] | None = None


def _row_text(row: Row, parts: Sequence[tuple[bool, str]], limits: _Limits | None, redact: Redact | None) -> _Text:
    """The text of a row from its parts, as (is a tool result, text); a row that holds no secret is searched once."""
    if redact is None or row.is_clean:
        return _text(row, parts, limits, None)
    has_secret = False

    def watched(text: str) -> str:
        nonlocal has_secret
        clean = redact(text)
        has_secret = has_secret or clean != text
        return clean

    made = _text(row, parts, limits, watched)
    size = sum(len(part) for _, part in parts)
    row.is_clean = not has_secret and (made.left_out is None or size <= SEARCHED_WHOLE)
    return made


def _text(row: Row, parts: Sequence[tuple[bool, str]], limits: _Limits | None, redact: Redact | None) -> _Text:
    texts: list[str] = []
    cleaned: dict[int, str] = {}  # by identity: the hash of a text of many megabytes is one long step
    left_out = 0
    if limits is not None and _is_large(parts, limits):
        return _large_text(row, "\n".join(part for _, part in parts), limits, redact)
    for result, part in parts:
        if limits is not None and result and is_longer(part, limits.row):
            sample = head_and_tail(part, limits.result, redact)
            texts.append(sample.text)
            cleaned[id(part)] = sample.text
            left_out += sample.left_out
            continue
        # Before anything is cut: half a secret is no longer known for one.
        clean = cleaned[id(part)] = redact(part) if redact else part
        texts.append(cut_middle(clean, limits.result) if result and limits is not None else clean)
    text = escape_marks(_joined("\n", texts, redact))
    own = None
    if row.role == "user":
        said = own_texts(row)
        own = text
        if said is not None:
            own = _joined("\n\n", [cleaned[id(part)] for part in said if part], redact)
    return _Text(text, own, (left_out, sum(len(part) for _, part in parts)) if left_out else None)


def _joined(sign: str, texts: Sequence[str], redact: Redact | None) -> str:
    """The texts of one row as one; a secret that is split over two of them shows only then."""
    text = sign.join(texts)
    return redact(text) if redact and len(texts) > 1 else text


def _is_large(parts: Sequence[tuple[bool, str]], limits: _Limits) -> bool:
    """True for a row that is not read whole, although its results are cut."""
    room = limits.row
    for result, part in parts:
        if is_longer(part, room) and not (result and room >= limits.result):
            return True
        room -= min(limits.result, len(part)) if result else len(part.encode("utf-8", "surrogatepass"))
    return False


def _large_text(row: Row, whole: str, limits: _Limits, redact: Redact | None) -> _Text:
    """Pieces of a row that is not read whole."""
    sample = evenly_cut(whole, limits.segment_tokens, redact)
    text = escape_marks(sample.text)
    own = None
    if row.role == "user":
        said = own_texts(row)
        own = text
        if said is not None:
            own = "\n\n".join(part for part in said if part)
            if is_longer(own, limits.row):
                own = evenly_cut(own, limits.segment_tokens, redact).text
            else:
                own = redact(own) if redact else own
    return _Text(text, own, (sample.left_out, len(whole)))


def render_group(
    rows: Sequence[Row], group: Group, *, number: int, segment_tokens: int | None, redact: Redact | None = None
) -> list[RenderedRow]:
    """The rendered rows of one group, numbered from `number`.

    `rows` is the whole history. A tool result longer than half a segment is cut to head and tail, and of a row longer
    than ten segments head, tail and pieces between them are kept; with `segment_tokens=None` nothing is cut.
    """
    limits = _Limits(segment_tokens) if segment_tokens else None
    answered = answered_calls(rows, group)
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = {call.id: call.name for call in answered.get(index, ())}
        parts = render_parts(row, names, group.missing if index == group.start else ())
        made = _row_text(row, parts, limits, redact)
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        own = made.own if row.role != "user" or is_of_user(row.raw, _first_user(rows)) else ""
        out.append(RenderedRow(number + len(out), row.role, name, made.text, own, made.left_out))
    return out


def _first_user(rows: Sequence[Row]) -> JsonRow | None:
    return next((row.raw for row in rows if row.user), None)


def _header_name(name: object, redact: Redact | None) -> str | None:
    """A tool's name as a header shows it: on one line, whatever ends it has."""
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
    """What one group adds to the running hash of the rendered rows, uncut."""
    digest = hashlib.sha256()
    for row in rendered:
        for part in (row.role, row.name or "", row.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.digest()
