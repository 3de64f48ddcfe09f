"""The fence around a transcript, and the headings above summaries that are merged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from context_summarize.transcript.marks import escape_marks


def fence_of(text: str) -> str:
    """The delimiter that encloses a text: derived from its hash, so that no text can hold its own."""
    return f"=== transcript {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]} ==="


def escape_fence(text: str, fence: str) -> str:
    """The text with the delimiter inside it broken; lone surrogates, which no provider takes, become '?'."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return clean.replace(fence, fence.replace("===", "= ="))


def numbered_parts(texts: Sequence[str]) -> tuple[str, ...]:
    """Summaries under a heading each, as the merge template is shown them."""
    return tuple(f"## Summary {at} of {len(texts)}\n{escape_marks(text)}" for at, text in enumerate(texts, 1))


def numbered(texts: Sequence[str]) -> str:
    """The same as one text."""
    return "\n\n".join(numbered_parts(texts))
