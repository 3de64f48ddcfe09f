"""How long an answer may be: little at first, more once a model shows reasoning or needs it, never above its limit."""

from __future__ import annotations

import re

from context_summarize.summaries.job import Target
from context_summarize.summaries.validation import Judged

LEAST_ROOM = 256
"""Tokens: a summary of few words has headings too."""
_THINKING_ROOM = 2_000
_LEAST_CEILING = 32
"""Tokens; a limit below this leaves no room for a summary."""
_NUMBER = re.compile(r"(?<![\w.])\d{2,9}(?![\w.]*\d)")


class Allowance:
    """What one model has shown of itself. A model that rambles gets little room; one that reasons gets more."""

    def __init__(self) -> None:
        self.reasons = False
        """True once the model has shown reasoning."""
        self.rambles = False
        """True once a second try with more room was cut off as well: what was cut off is taken as far as it goes."""
        self._factor = 1
        self._ceiling: int | None = None

    def room(self, summary_tokens: int, target: Target, before: int = 0) -> int:
        """`max_output_tokens` of a try, in tokens; never above what the provider allows.

        Args:
            before: what the try before it had; the second one has twice as much.
        """
        if self.reasons:
            room = 4 * summary_tokens + _THINKING_ROOM
        else:
            room = max(LEAST_ROOM, 2 * summary_tokens * self._factor)
        if target.window is not None:
            room = min(room, max(summary_tokens * 2, target.window // 4))
        room = max(room, 2 * before)
        for limit in (self._ceiling, target.output):
            room = room if limit is None else min(room, limit)
        return room

    def learn(self, *, reasons: bool) -> None:
        """Note what an answer or the history shows."""
        self.reasons = self.reasons or reasons

    def cut_off(self, tokens: int, room: int) -> None:
        """An answer was cut off after `tokens` of text. Where they are few, the rest went into hidden reasoning."""
        if 2 * tokens < room:
            self.reasons = True

    def asked_again(self, first: Judged, second: Judged) -> None:
        """Learn from a second try with more room, after a first one that was cut off.

        A model that ends by itself then needs the room: the next first try has as much. One that goes on and on fills
        whatever it is given.
        """
        if not second.is_cut:
            self._factor, self.rambles = 2, False
        elif first.is_cut and not self.reasons:
            self.rambles = True

    def lower(self, asked: int, refusal: str) -> bool:
        """The provider refused so long an answer: keep to the limit that it names, else to half. False at the end."""
        named = [number for number in map(int, _NUMBER.findall(refusal)) if _LEAST_CEILING <= number < asked]
        ceiling = max(named, default=asked // 2)
        if ceiling < _LEAST_CEILING:
            return False
        self._ceiling = ceiling
        return True
