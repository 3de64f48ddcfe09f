"""The limits of a plan, in tokens of ours, and the one formula that says when the next compaction is due."""

from __future__ import annotations

from dataclasses import dataclass

GROWTH = 0.8
"""Between two compactions a request grows by this share of the threshold, times what the first one has left free.

No compaction frees less than this share of the threshold, times what it leaves."""

_LEFT = 0.4
"""Share of the base that a compaction may leave in use without a look at the results among the newest rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings as they bear on one request; tokens are ours, uncorrected."""

    system_tokens: int
    """Tokens of the system prompt, which stands beside the view."""
    view_room: int
    """Tokens for everything but the system prompt."""
    base: int
    """Tokens that all shares are of: the room, or less where the threshold is given in tokens."""
    keep_recent: int
    threshold: float
    target: float
    share: float
    """Of the base, for all summaries together."""
    fan_in: int
    shorten_above: int | None
    """Tool results above this many tokens are shortened; None = never."""
    shorten_newest_above: int | None = None
    """The same for those among the newest rows, where a compaction would leave more than `most_left`."""
    notes_room: int = 0
    """Tokens that the row of notes may take; they come out of `share`."""

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
        """Tokens of the view that a compaction leaves at most, where it takes no more than shorter results."""
        return int(_LEFT * self.base)

    def full_at(self, left: int) -> int:
        """Returns the tokens of the view that count as full, if the last compaction left so many.

        They are the base; where more than half of it was left, twice what was left, as far as there is room.
        """
        return min(self.view_room, max(self.base, 2 * left))

    def again_above(self, left: int) -> int:
        """Returns the tokens of the view from which on a compaction is due, if the last one left so many.

        The same holds before it: a compaction that would leave so many is worth making from this size on. What is left
        raises the point, because each compaction throws the provider's prompt cache away.
        """
        free = max(0, self.full_at(left) - left)
        return max(int(self.threshold * self.base), left + int(GROWTH * self.threshold * free))

    def defer_below(self, left: int) -> int:
        """Tokens of the view up to which a session may go on while the summaries of that compaction are being made."""
        return (self.again_above(left) + self.full_at(left)) // 2
