"""Keys: the hash of all that a summary may depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from context_summarize.transcript.rows import RenderedRow, render_rows

SCHEMA_VERSION = "1"


def hash_parts(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def segment_key(
    rendered: Sequence[RenderedRow], template_hash: str, summary_tokens: int, focus: str | None = None
) -> str:
    """The key of a level-0 summary: nothing but what its text may depend on."""
    extra = () if focus is None else (focus,)
    return hash_parts(SCHEMA_VERSION, template_hash, str(summary_tokens), render_rows(rendered), *extra)
