"""The limits of a plan, in our own tokens, and the formula that says when the next compaction is due."""

from __future__ import annotations

from dataclasses import dataclass

GROWTH = 0.8
"""A request may grow by `GROWTH * threshold * free` tokens, where the last compaction left `free` tokens of the base.

A compaction frees at least `GROWTH * threshold * left` tokens, where `left` is the size of the view after it."""

_LEFT = 0.4
"""If a compaction would leave more than this share of the base, it also shortens results among the newest rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one request, from the settings; all in our own tokens, uncorrected."""

    system_tokens: int
    """Tokens of the system prompt, which is no part of the view."""
    view_room: int
    """Tokens for everything but the system prompt."""
    base: int
    """All shares are shares of these tokens: `view_room`, or less if the threshold is given in tokens."""
    keep_recent: int
    threshold: float
    target: float
    share: float
    """Share of the base for all summaries together."""
    fan_in: int
    shorten_above: int | None
    """Tool results above this many tokens are shortened; None = never."""
    shorten_newest_above: int | None = None
    """The same for results among the newest rows, if a compaction would leave more than `most_left`."""
    notes_room: int = 0
    """Tokens that the row of notes may take; they are part of `share`."""

    @property
    def threshold_room(self) -> int:
        """Tokens of the view at which a compaction is due."""
        return int(self.threshold * self.base)

    @property
    def target_room(self) -> int:
        """Tokens of the view that a compaction aims at."""
        return int(self.target * self.base)

    @property
    def most_left(self) -> int:
        """Tokens of the view above which a compaction also shortens results among the newest rows."""
        return int(_LEFT * self.base)

    def full_after(self, left: int) -> int:
        """Returns the tokens of the view that count as full, if the last compaction left so many.

        That is the base. If more than half of the base was left, it is twice what was left, at most `view_room`.
        """
        return min(self.view_room, max(self.base, 2 * left))

    def due_after(self, left: int) -> int:
        """Returns the tokens of the view from which on a compaction is due, if the last one left so many.

        From the same size on, a compaction that would leave so many is worth making. The more is left, the later the
        next one is due, because each compaction empties the provider's prompt cache.
        """
        free = max(0, self.full_after(left) - left)
        return max(self.threshold_room, left + int(GROWTH * self.threshold * free))

    def defer_below(self, left: int) -> int:
        """Returns the tokens up to which a session may go on while the summaries of that compaction are made."""
        return (self.due_after(left) + self.full_after(left)) // 2
