"""Compatibility decomposition in time that grows with the text, whatever marks it holds."""

from __future__ import annotations

import unicodedata

_PIECE = 256
"""Characters. Sorting a run of marks takes time by the square of its length, so no piece is much longer."""
_MOST_MARKS = 32
"""Marks that follow a piece and still belong to it; no real text has more on one letter (Unicode annex 15 says 30)."""


def decomposed(text: str) -> str:
    """The text in normal form NFKD; a run of hundreds of marks is sorted piece by piece."""
    if len(text) <= _PIECE:
        return unicodedata.normalize("NFKD", text)
    out: list[str] = []
    at = 0
    while at < len(text):
        end = at + _PIECE
        while end < min(at + _PIECE + _MOST_MARKS, len(text)) and unicodedata.combining(text[end]):
            end += 1
        out.append(unicodedata.normalize("NFKD", text[at:end]))
        at = end
    return "".join(out)
