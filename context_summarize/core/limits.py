"""What a plan has to keep to, in tokens of ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings as they bear on one request; tokens are ours, uncorrected."""

    own_budget: int
    """Tokens of the whole request, the base of all shares."""
    view_room: int
    """Tokens for everything but the system prompt."""
    keep_recent: int
    threshold: float
    target: float
    share: float
    """Of the budget, for all summaries together."""
    fan_in: int
    shorten_above: int | None
    """Tool results above this many tokens are shortened; None = never."""
    min_fold: float = 0.1
    """Share of the budget that a compaction must free."""
    notes_room: int = 0
    """Tokens that the row of notes may take; they come out of `share`."""

    @property
    def system_tokens(self) -> int:
        """Tokens of the system prompt."""
        return self.own_budget - self.view_room

    @property
    def threshold_room(self) -> int:
        """Tokens of the view at which a compaction is due."""
        return int(self.threshold * self.own_budget) - self.system_tokens

    @property
    def target_room(self) -> int:
        """Tokens of the view that a compaction aims at."""
        return int(self.target * self.own_budget) - self.system_tokens
