"""Rows as the summariser is shown them, group by group, with what is left out of long ones; and their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial

from context_summarize.core.groups import Group, answered_calls
from context_summarize.messages.reading import is_of_user
from context_summarize.messages.rows import Row
from context_summarize.messages.text import own_texts, render_parts
from context_summarize.redaction import Redact
from context_summarize.transcript.escaping import cut_middle, escape_marks
from context_summarize.transcript.rows import RenderedRow

LARGE_SEGMENTS = 10
"""A row that is longer than so many segments is cut to that length."""


def render_group(
    rows: Sequence[Row], group: Group, *, number: int, segment_tokens: int | None, redact: Redact | None = None
) -> list[RenderedRow]:
    """The rendered rows of one group, numbered from `number`.

    `rows` is the whole history. A tool result longer than half a segment is cut to head and tail, and so is a row
    longer than ten segments; with `segment_tokens=None` nothing is cut.
    """
    answered = answered_calls(group)
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = {call.id: call.name for call in answered.get(index, ())}
        parts = render_parts(row, names, group.missing if index == group.start else ())
        found: list[str] = []
        search = partial(_watched, redact, found) if redact and not row.is_clean else None
        text = _text(parts, segment_tokens, search)
        own = _own_text(rows, row, text, search) if row.role == "user" else None
        row.is_clean = row.is_clean or (search is not None and not found)
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        out.append(RenderedRow(number + len(out), row.role, name, text, own))
    return out


def _watched(redact: Redact, found: list[str], text: str) -> str:
    """The text without secrets; where it has some, that is noted in `found`."""
    clean = redact(text)
    if clean != text:
        found.append(clean)
    return clean


def _own_text(rows: Sequence[Row], row: Row, text: str, redact: Redact | None) -> str:
    """See `RenderedRow.own`; of a row that was cut, all that is left of it."""
    first_user = next((other.raw for other in rows if other.user), None)
    if not is_of_user(row.raw, first_user):
        return ""
    said = own_texts(row)
    return (
        text if said is None else _joined("\n\n", [redact(part) if redact else part for part in said if part], redact)
    )


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


def _text(parts: Sequence[tuple[bool, str]], segment_tokens: int | None, redact: Redact | None) -> str:
    """The text of a row from its parts, as (is a tool result, text)."""
    # Redacted before anything is cut: half a secret is no longer known for one.
    clean = [(result, redact(part) if redact else part) for result, part in parts]
    if segment_tokens is None:
        return escape_marks(_joined("\n", [part for _, part in clean], redact))
    texts = [cut_middle(part, segment_tokens * 2) if result else part for result, part in clean]
    return escape_marks(cut_middle(_joined("\n", texts, redact), segment_tokens * 4 * LARGE_SEGMENTS))


def _joined(sign: str, texts: Sequence[str], redact: Redact | None) -> str:
    """The texts of one row as one; a secret that is split over two of them shows only then."""
    text = sign.join(texts)
    return redact(text) if redact and len(texts) > 1 else text
