"""Rows as the summariser is shown them, group by group, and their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from context_summarize.core.groups import Group
from context_summarize.messages.rows import Call, Row
from context_summarize.messages.text import own_texts, render_parts
from context_summarize.redaction.redactor import Redact
from context_summarize.transcript.escaping import cut_middle, escape_marks
from context_summarize.transcript.rows import RenderedRow


def _row_text(
    row: Row, names: dict[str, str], missing: Sequence[Call], limit_bytes: int | None, redact: Redact | None
) -> tuple[str, str | None]:
    """The text of a row, and what of it is the user's own (`RenderedRow.own`)."""
    texts: list[str] = []
    cleaned: dict[str, str] = {}
    for result, part in render_parts(row, names, missing):
        # Before anything is cut: half a secret is no longer known for one.
        clean = cleaned[part] = redact(part) if redact else part
        texts.append(cut_middle(clean, limit_bytes) if result and limit_bytes else clean)
    text = escape_marks(_joined("\n", texts, redact))
    if row.role != "user":
        return text, None
    own = own_texts(row)
    return text, text if own is None else _joined("\n\n", [cleaned[part] for part in own if part], redact)


def _joined(sign: str, texts: Sequence[str], redact: Redact | None) -> str:
    """The texts of one row as one; a secret that is split over two of them shows only then."""
    text = sign.join(texts)
    return redact(text) if redact and len(texts) > 1 else text


def render_group(
    rows: Sequence[Row], group: Group, *, number: int, segment_tokens: int | None, redact: Redact | None = None
) -> list[RenderedRow]:
    """The rendered rows of one group, numbered from `number`.

    `rows` is the whole history. A tool result longer than half a segment is cut to head and tail; with
    `segment_tokens=None` nothing is cut.
    """
    limit = segment_tokens * 4 // 2 if segment_tokens else None
    called = list(rows[group.start].calls)
    answered: dict[int, dict[str, str]] = {}
    for index, call_id in group.answers:
        # The nearest call with its id is the one that a result belongs to, as in `Grouper`.
        at = max(at for at, call in enumerate(called) if call.id == call_id)
        answered.setdefault(index, {})[call_id] = called.pop(at).name
    out: list[RenderedRow] = []
    for index in range(group.start, group.end):
        row = rows[index]
        if not row.rendered:
            continue
        names = answered.get(index, {})
        text, own = _row_text(row, names, group.missing if index == group.start else (), limit, redact)
        name = _header_name(names.get(row.result_ids[0]) or row.raw.get("name"), redact) if row.role == "tool" else None
        out.append(RenderedRow(number + len(out), row.role, name, text, own))
    return out


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
