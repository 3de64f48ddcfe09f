"""What an inspection tells of a recording, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from context_summarize.replay.kept_values import Kept
from context_summarize.session.snapshot import SummaryNode


@dataclass(frozen=True, slots=True)
class RowLine:
    """One row of the recording. Sizes here and below are in tokens."""

    row: int
    """Counted from 1 over all rows, like the lines of the file without blank lines."""
    message: int | None
    """Its number in the frames of summaries; None for a row that is not rendered, such as a system row."""
    role: str
    tool: str | None
    """For a result: its tool, if known."""
    tokens: int


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """One segment: the messages that one call summarises."""

    index: int
    first: int
    last: int
    """Message numbers, as in frames."""
    tokens: int
    """Size of the text that the summariser reads."""
    summary_tokens: int
    """Size of its summary with its exact values; if there is no summary yet, the size to ask for."""
    folded: bool
    """True if the view shows a summary in its place."""


@dataclass(frozen=True, slots=True)
class WindowUse:
    """What the next request would hold. `system` to `free` make up the budget."""

    window: int
    budget: int
    threshold: int | None
    """Use at which a compaction runs; None if it runs only when a request does not fit."""
    system: int
    pins: int
    """Rows that stay verbatim and are also summarised: first and newest user message, rows marked critical."""
    summaries: int
    verbatim: int
    free: int
    """Below 0 if the request does not fit."""
    reserved: int
    """Kept free for the answer and the safety margin."""


@dataclass(frozen=True, slots=True)
class NextCompaction:
    """What the next compaction does with the segments that are closed now."""

    first: int | None
    last: int | None
    """Messages that a summary replaces; None if there are none."""
    segments: int
    merged: int
    """New summaries made from several older ones."""
    shortened: int
    """Long rows that are reduced to head and tail."""
    freed: int
    """Tokens that it would save now. Summaries that are not written yet count with their estimated size."""
    least: int
    """Tokens that a compaction at the threshold must save, by the setting `min_fold`."""
    calls: int
    """Summaries to write."""
    input_tokens: int
    output_tokens: int
    """Estimated tokens of those calls."""


@dataclass(frozen=True, slots=True)
class Original:
    """The messages that one summary stands for, also those behind the summaries that it was merged from."""

    tokens: int
    """Size of the texts that the summariser reads of them."""
    values: Kept
    """Their exact values, and how many the summary holds."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A recording and what a window holds of it."""

    rows: int
    messages: int
    """Rows that a summariser reads; the other rows belong to the host, such as system rows."""
    groups: int
    """Closed groups: runs of rows that are never split."""
    largest_group: int
    """Rows of the longest group."""
    pins: int
    """Rows marked to stay verbatim: the host's system rows and critical rows."""
    tokens: int
    segment_tokens: int
    summary_tokens: int
    segments: tuple[SegmentLine, ...]
    unsegmented: int
    """Messages after the last segment, too few or too new for another segment."""
    largest: tuple[RowLine, ...]
    use: WindowUse
    next: NextCompaction
    requests: int
    boundaries: int
    calls: int
    input_tokens: int
    output_tokens: int
    """What the provider reads and writes for all summaries of the session, measured with the offline provider. A model
    reads the same rows, but its summaries have other lengths, which changes the merges."""
    tree: tuple[SummaryNode, ...]
    """The summaries at the end of the session, oldest first, written by the offline provider."""
    originals: Mapping[str, Original]
    """What each summary of the tree stands for, by its key; those alone whose text is kept."""

    @property
    def used(self) -> int:
        """Tokens of the next request."""
        return self.use.budget - self.use.free


def told_when(found: Inspection) -> str:
    """When the next compaction runs, as the rest of a sentence that begins with the size of the request now."""
    use = found.use
    if found.used > use.budget:
        return f"tokens now, above the budget of {use.budget:,}: no compaction can make the request smaller yet"
    if use.threshold is None:
        return f"tokens now; a compaction runs when a request does not fit {use.budget:,} tokens (auto_compact is off)"
    if found.used < use.threshold:
        return f"tokens now; the compaction runs at {use.threshold:,} tokens"
    return (
        f"tokens now, the threshold is {use.threshold:,}: a compaction runs as soon as it frees at least "
        f"{found.next.least:,} tokens (min_fold)"
    )
