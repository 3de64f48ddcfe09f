"""Escaping of text that looks like a mark of a transcript, and cuts that leave a note."""

from __future__ import annotations

import re
from collections.abc import Iterator

INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x1f\x7f\x80-\x84\x86-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f"
)
"""Invisible characters, for a character class of a pattern."""
LINE_END = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""Characters that some reader takes for the end of a line, for a character class."""
BLANK = r" \t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Blanks within a line, for a character class."""
_MARK_LIKE = re.compile(
    rf"([{LINE_END}])(?=[{INVISIBLE}]*(?:"
    # the header of a row; a word with letters beyond ASCII may look like a role
    rf"[#\ufe5f\uff03][{INVISIBLE}]*\d[\d{INVISIBLE}]*[{BLANK}][{BLANK}{INVISIBLE}]*"
    r"(?:(?i:user|assistant|tool|system|developer|function)\b|[A-Za-z]{0,9}[^\x00-\x7f])"
    # our fence, and the heading of a summary in a merge
    rf"|[=\u2550\ua78a\ufe66\uff1d][=\u2550\ua78a\ufe66\uff1d{BLANK}{INVISIBLE}]*(?i:transcript)"
    rf"|[#\ufe5f\uff03]{{2}}[{BLANK}{INVISIBLE}]*(?i:summary)[{BLANK}{INVISIBLE}]*\d))"
)


_STOP = re.compile(rf"[^{INVISIBLE}{LINE_END}{BLANK}\d#\ufe5f\uff03=\u2550\ua78a\ufe66\uff1dA-Za-z]|[A-Za-z]{{12}}")
"""Ends within a line where no mark can go on: what follows is searched by itself."""
_PIECE = 100_000
"""Characters that are searched at once."""


def escape_marks(text: str) -> str:
    """The text with one blank before each line that looks like a row's header, our fence or a summary's heading.

    Look-alikes count, and so does every character that some reader takes for the end of a line.
    """
    return "".join(escaped_pieces(text))


def escaped_pieces(text: str) -> Iterator[str]:
    """The same in pieces, for texts that take long."""
    yield _escaped(f"\n{text[: (end := _piece_end(text, 0))]}")[1:]
    while end < len(text):
        start, end = end, _piece_end(text, end)
        yield _escaped(text[start:end])


def _escaped(text: str) -> str:
    return _MARK_LIKE.sub(r"\1 ", text) if "#" in text or not text.isascii() or "=" in text else text


def _piece_end(text: str, start: int) -> int:
    """Where a piece ends: before a line end, or else where no mark goes on."""
    end = start + _PIECE
    if end >= len(text):
        return len(text)
    line_end = text.rfind("\n", start + 1, end)
    if line_end >= 0:
        return line_end
    stop = _STOP.search(text, end)
    return stop.end() if stop else len(text)


def after_cut(text: str, at: int) -> str:
    """The text after a cut; the rest of a line that was cut in two is escaped, as it may look like a mark."""
    first, line_end, others = text[at:].partition("\n")
    return text[at:] if text[at - 1 : at] == "\n" else f"{escape_marks(first)}{line_end}{others}"


def left_out_note(left_out: int, length: int) -> str:
    """The line that stands where so many characters of a text were left out."""
    return f"[… {left_out:,} of {length:,} characters left out …]"


def cut_middle(text: str, limit_bytes: int) -> str:
    """Two thirds head, one third tail, and a count of what was left out; unchanged when it is short enough."""
    if len(text) * 4 <= limit_bytes or len(text.encode("utf-8", "surrogatepass")) <= limit_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    head = data[: limit_bytes * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - limit_bytes // 3 :].decode("utf-8", "ignore")
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n{left_out_note(left_out, len(text))}\n{after_cut(text, len(text) - len(tail))}"
