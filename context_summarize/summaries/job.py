"""A request for one summary, and the provider that gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from context_summarize.transcript.rows import RenderedRow


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to make."""

    key: str
    level: int
    parts: tuple[str, ...]
    """The source, in pieces that belong together: groups at level 0, texts of the children at higher levels."""
    source_tokens: int
    """At level 0 the size of the text; at higher levels the size of the children's texts."""
    summary_tokens: int
    focus: str | None = None
    rows: tuple[RenderedRow, ...] = ()
    """The rendered rows behind a job of level 0."""
    reasons: bool = False
    """True where the session's model shows reasoning in the source: thinking blocks, which are never summarised."""

    @property
    def text(self) -> str:
        """The whole source."""
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Target:
    """The provider that is asked."""

    provider: Any
    name: str
    model: str | None = None
    window: int | None = None
    """Tokens that one request may hold; None = unknown."""
    output: int | None = None
    """Tokens that one answer may hold at most; None = unknown."""
