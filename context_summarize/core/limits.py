"""The limits of a plan, in our own tokens, and the formula that says when the next compaction is due."""

from __future__ import annotations

from dataclasses import dataclass

GROWTH = 0.8
"""`GROWTH * threshold` is the share by which views grow and shrink, 0.4 by default. Two rules use it:

* A view grows at least by this share of the tokens that the last compaction left free, before the next one is due.
* A compaction frees at least this share of the tokens that it leaves: of 70,000, it leaves 50,000 at most.
"""

_LEFT = 0.4
"""The share of the base for `Limits.most_left`."""


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
    shorten_above: int | None
    """Tool results above this many tokens are shortened; None = never."""
    shorten_newest_above: int | None = None
    """The threshold for results among the newest rows, if a compaction would leave more than `most_left`."""
    notes_room: int = 0
    """Tokens that the thread may take; they are part of `share`."""

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
        """If a compaction would leave more tokens than this, it also shortens results among the newest rows."""
        return int(_LEFT * self.base)

    def full_after(self, left: int) -> int:
        """Returns the tokens at which the view counts as full after a compaction that left `left` tokens.

        That is the base. If more than half of the base was left, it is twice what was left, at most `view_room`.
        """
        return min(self.view_room, max(self.base, 2 * left))

    def due_after(self, left: int) -> int:
        """Returns the tokens of the view at which a compaction is due after one that left `left` tokens.

        A compaction that leaves `left` is worth making from this size on. The more is left, the later the
        next one is due, because each compaction empties the provider's prompt cache.

        Example: the base is 100,000, the threshold 0.65. If 20,000 are left, the next one is due at the threshold,
        65,000. If 50,000 are left, it is due at 50,000 + 0.8 * 0.65 * 50,000 = 76,000.
        """
        free = max(0, self.full_after(left) - left)
        return max(self.threshold_room, left + int(GROWTH * self.threshold * free))

    def defer_below(self, left: int) -> int:
        """Returns the tokens up to which a session may go on while the next compaction's summaries are made."""
        return (self.due_after(left) + self.full_after(left)) // 2
