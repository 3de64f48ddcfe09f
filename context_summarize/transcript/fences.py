"""The fence around a transcript, and the headings above summaries that are merged: written and read here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from context_summarize.transcript.escaping import escape_marks

RECALL_FENCE = ("=== transcript ===", "=== transcript ends ===")
"""Lines before and after the rows of a recall answer. Rendered rows hold no line that begins like these."""

_FENCED = re.compile(r"(?ms)^(=== transcript [0-9a-f]{20} ===)\n(.*)\n\1$")
_HEADING = re.compile(r"(?m)^## Summary \d+ of \d+\n")


def fence_of(text: str) -> str:
    """The delimiter that encloses a text: derived from its hash, so that no text can hold its own."""
    return f"=== transcript {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]} ==="


def escape_fence(text: str, fence: str) -> str:
    """The text with the delimiter inside it broken; lone surrogates, which no provider takes, become '?'."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return clean.replace(fence, fence.replace("===", "= ="))


def enclosed(text: str, fence: str) -> str:
    """The escaped text between two lines of its delimiter."""
    return f"{fence}\n{escape_fence(text, fence)}\n{fence}"


def enclosed_in(message: str) -> str | None:
    """The text between the delimiters in a message; None where there are none."""
    found = _FENCED.search(message)
    return found[2] if found else None


def numbered(texts: Sequence[str]) -> str:
    """Summaries under a heading each, as the merge template is shown them."""
    return "\n\n".join(f"## Summary {at} of {len(texts)}\n{escape_marks(text)}" for at, text in enumerate(texts, 1))


def split_numbered(text: str) -> list[str] | None:
    """The summaries under their headings, without these; None where there is no heading."""
    if not _HEADING.search(text):
        return None
    return [part.strip() for part in _HEADING.split(text) if part.strip()]
