"""What the summariser is shown of a row that is too large for it: head, tail, and evenly cut pieces between them."""

from __future__ import annotations

from dataclasses import dataclass

from context_summarize.redaction import Redact
from context_summarize.transcript.escaping import left_out_note

LARGE_SEGMENTS = 10
"""A row that is longer than so many segments is not read whole."""
_PIECES = 9
"""Pieces of such a row, of a segment each: with the call that joins them, at most ten calls."""
_AROUND = 16_000
"""Characters that are redacted beside a piece, because half a secret is no longer known for one. They are cut off."""
SEARCHED_WHOLE = 500_000
"""A text of at most so many characters is searched for secrets as a whole, which is no more than its pieces need."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is left of a large text."""

    text: str
    left_out: int
    """Characters."""


def is_longer(text: str, limit_bytes: int) -> bool:
    """True if the text takes more bytes in UTF-8. A text that is much longer is not encoded for that."""
    if len(text) > limit_bytes or len(text) * 4 <= limit_bytes:
        return len(text) > limit_bytes
    return len(text.encode("utf-8", "surrogatepass")) > limit_bytes


def evenly_cut(text: str, segment_tokens: int, redact: Redact | None) -> Sample:
    """Pieces of a segment each from head to tail, redacted, and between them notes of what was left out."""
    text, redact = _searched(text, redact)
    size = segment_tokens * 4
    starts = [at * (len(text) - size) // (_PIECES - 1) for at in range(_PIECES)]
    return _joined(text, [(start, size) for start in starts], redact)


def head_and_tail(text: str, limit_bytes: int, redact: Redact | None) -> Sample:
    """Two thirds head and one third tail, redacted, and between them a note of what was left out."""
    text, redact = _searched(text, redact)
    head, tail = limit_bytes * 2 // 3, limit_bytes // 3
    return _joined(text, [(0, head), (len(text) - tail, tail)], redact)


def _searched(text: str, redact: Redact | None) -> tuple[str, Redact | None]:
    """The text without secrets, and what is left to search its pieces with."""
    return (redact(text), None) if redact and len(text) <= SEARCHED_WHOLE else (text, redact)


def _joined(text: str, places: list[tuple[int, int]], redact: Redact | None) -> Sample:
    """The pieces that begin at these places and take at most so many bytes; the last one ends with the text."""
    out: list[str] = []
    end = left_out = 0
    for start, size in places:
        is_last = start + size >= len(text)
        piece = _cut_to(text[start : start + size], size, from_end=is_last)
        first = start + size - len(piece) if is_last else start
        if first > end:
            out.append(left_out_note(first - end, len(text)))
            left_out += first - end
        end = first + len(piece)
        out.append(_clean(text, first, end, redact))
    return Sample("\n".join(out), left_out)


def _cut_to(text: str, size: int, *, from_end: bool) -> str:
    """As much of the text as takes at most `size` bytes."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= size:
        return text
    return data[len(data) - size if from_end else 0 :][:size].decode("utf-8", "ignore")


def _clean(text: str, first: int, end: int, redact: Redact | None) -> str:
    """`text[first:end]`, redacted with what stands around it."""
    before, after = min(first, _AROUND), min(len(text) - end, _AROUND)
    shown = text[first - before : end + after]
    clean = redact(shown) if redact else shown
    if clean == shown:
        return text[first:end]
    return clean[before : len(clean) - after]
