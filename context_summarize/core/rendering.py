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
from context_summarize.transcript.escaping import escape_marks, left_out_note
from context_summarize.transcript.rows import RenderedRow

LARGE_SEGMENTS = 10
"""A row that is longer than so many segments is cut to that length."""
_AROUND = 16_000
"""Characters that are redacted beside what is shown and then cut off: half a secret is no longer known for one."""
_SEARCHED_WHOLE = 500_000
"""A text of at most so many characters is searched for secrets as a whole, which is no more than head and tail need."""


def render_group(
    rows: Sequence[Row], group: Group, *, number: int, segment_tokens: int | None, redact: Redact | None = None
) -> list[RenderedRow]:
    """The rendered rows of one group, numbered from `number`.

    `rows` is the whole history. A tool result longer than half a segment is cut to head and tail, and so is a row
    longer than ten segments; with `segment_tokens=None` nothing is cut.
    """
    answered = answered_calls(rows, group)
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = {call.id: call.name for call in answered.get(index, ())}
        parts = render_parts(row, names, group.missing if index == group.start else ())
        found: list[str] = []
        search = partial(_watched, redact, found) if redact and not row.is_clean else None
        text, left_out = _text(parts, segment_tokens, search)
        own = _own_text(rows, row, text, search) if row.role == "user" else None
        is_whole = left_out is None or left_out[1] <= _SEARCHED_WHOLE
        row.is_clean = row.is_clean or (search is not None and is_whole and not found)
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        out.append(RenderedRow(number + len(out), row.role, name, text, own, left_out))
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


# --- long texts -------------------------------------------------------------------------------------------------------


def _text(
    parts: Sequence[tuple[bool, str]], segment_tokens: int | None, redact: Redact | None
) -> tuple[str, tuple[int, int] | None]:
    """The text of a row from its parts, as (is a tool result, text), and (characters left out of it, its characters).

    The second is None where the row is read whole; a result that is cut to half a segment is.
    """
    if segment_tokens is None:
        return escape_marks(_joined("\n", [redact(part) if redact else part for _, part in parts], redact)), None
    result_bytes, row_bytes = segment_tokens * 2, segment_tokens * 4 * LARGE_SEGMENTS
    texts, left_out = list[str](), 0
    for result, part in parts:
        text, less = cut(part, result_bytes if result else row_bytes, redact)
        texts.append(text)
        left_out += less if is_longer(part, row_bytes) else 0
    joined = _joined("\n", texts, redact)
    if len(texts) > 1:
        joined, less = cut(joined, row_bytes, None)
        left_out += less
    return escape_marks(joined), (left_out, sum(len(part) for _, part in parts)) if left_out else None


def _joined(sign: str, texts: Sequence[str], redact: Redact | None) -> str:
    """The texts of one row as one; a secret that is split over two of them shows only then."""
    text = sign.join(texts)
    return redact(text) if redact and len(texts) > 1 else text


def is_longer(text: str, limit_bytes: int) -> bool:
    """True if the text takes more bytes in UTF-8. A text that is much longer is not encoded for that."""
    if len(text) > limit_bytes or len(text) * 4 <= limit_bytes:
        return len(text) > limit_bytes
    return len(text.encode("utf-8", "surrogatepass")) > limit_bytes


def cut(text: str, limit_bytes: int, redact: Redact | None) -> tuple[str, int]:
    """The text without secrets, and how many characters were left out of it.

    Of a longer one two thirds head and one third tail are left, and between them a note of what was left out.
    """
    # Before anything is cut: half a secret is no longer known for one.
    if redact and len(text) <= _SEARCHED_WHOLE:
        text, redact = redact(text), None
    if not is_longer(text, limit_bytes):
        return redact(text) if redact else text, 0
    head, tail = limit_bytes * 2 // 3, limit_bytes // 3
    end = len(text[:head].encode("utf-8", "surrogatepass")[:head].decode("utf-8", "ignore"))
    data = text[len(text) - tail :].encode("utf-8", "surrogatepass")
    begin = len(text) - len(data[max(0, len(data) - tail) :].decode("utf-8", "ignore"))
    note = left_out_note(begin - end, len(text))
    return f"{_clean(text, 0, end, redact)}\n{note}\n{_clean(text, begin, len(text), redact)}", begin - end


def _clean(text: str, first: int, end: int, redact: Redact | None) -> str:
    """`text[first:end]`, redacted with what stands around it."""
    before, after = min(first, _AROUND), min(len(text) - end, _AROUND)
    shown = text[first - before : end + after]
    clean = redact(shown) if redact else shown
    if clean == shown:
        return text[first:end]
    return clean[before : len(clean) - after]
