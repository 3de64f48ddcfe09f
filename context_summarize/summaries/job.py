"""One summary to be made, and who is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from context_summarize.facts.fact import Fact
from context_summarize.transcript.rows import RenderedRow


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to be made."""

    key: str
    level: int
    parts: tuple[str, ...]
    """What it stands for, in pieces that belong together: groups at level 0, children's texts above."""
    facts: tuple[Fact, ...]
    """Exact values of the source, in the ledger's order."""
    source_tokens: int
    """Of the text at level 0, of the children as they are shown above."""
    summary_tokens: int
    focus: str | None = None
    directives: tuple[str, ...] = ()
    """User directives of the source, oldest first."""
    rows: tuple[RenderedRow, ...] = ()
    """The rendered rows behind a job of level 0."""

    @property
    def text(self) -> str:
        """The whole of it."""
        return "\n\n".join(self.parts)


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked."""

    provider: Any
    name: str
    model: str | None = None
    window: int | None = None
    """Tokens that one request may hold; None = unknown."""
