"""What is known of one summary: its status, its text or a fallback, its task, and the rows that stand for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from context_summarize.core.nodes import Place, Summary
from context_summarize.core.view_state import ShownNode

MAX_REFUSALS = 3
"""Times that the answers for a key may be refused by their form, two each; after that it is not asked for again."""


class Status(Enum):
    """What is known of a key."""

    UNASKED = "unasked"
    UNDER_WAY = "under way"
    LATE = "late"
    """Under way, and waited for in vain: it is not waited for again."""
    KNOWN = "known"
    FAILED = "failed"
    """Asked since the last compaction, in vain."""
    REFUSED = "refused"
    """Refused too often: it is not asked for again."""


@dataclass(slots=True)
class Entry:
    """What is known of one key."""

    summary: Summary | None = None
    from_store: bool = False
    fallback: Summary | None = None
    stands_in: bool = False
    """True while the fallback takes the summary's place in the plans of a compaction."""
    task: asyncio.Task[None] | None = None
    late: bool = False
    asked: bool = False
    """True once it has been asked for since the last compaction: it has failed if that has ended without a text."""
    refusals: int = 0
    rows: dict[Place, ShownNode] = field(default_factory=dict)
    """The rows that stand for it, by place: segments of equal text share a key, but not a row."""

    def text(self) -> Summary | None:
        """The text that plans count with."""
        return self.summary or (self.fallback if self.stands_in else None)

    def status(self) -> Status:
        """What is known of the key."""
        if self.summary is not None:
            return Status.KNOWN
        if self.task is not None:
            return Status.LATE if self.late else Status.UNDER_WAY
        if self.refusals >= MAX_REFUSALS:
            return Status.REFUSED
        return Status.FAILED if self.asked else Status.UNASKED
