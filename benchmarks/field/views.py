"""What a view holds and has in common with the one before; the counter that contestants are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from benchmarks.field.model import facts_in
from benchmarks.peers import Row, text_of
from context_summarize.tokens.measure import measure

Count = Callable[[str], int]
HEADS = ("system", "developer")


class Counting:
    """A contestant's counter: the tokenizer with a cache, and how much it would have had to read without one."""

    def __init__(self, count: Count) -> None:
        self._cached = functools.lru_cache(maxsize=200_000)(count)
        self.characters = 0

    def __call__(self, text: str) -> int:
        self.characters += len(text)
        return self._cached(text)


class Views:
    """What one view has in common with the one before, and what it holds."""

    def __init__(self, count: Count, spoken: frozenset[str]) -> None:
        self._count = count
        self._spoken = spoken
        self.rows: list[Row] = []
        self.sizes: list[int] = []

    def next(self, view: Sequence[Row]) -> tuple[int, int, int]:
        """(tokens, tokens that stand where they stood in the view before, whole rows that do)."""
        same = 0
        for old, new in zip(self.rows, view, strict=False):
            if old["role"] != new["role"] or old["content"] != new["content"]:
                break
            if old.get("tool_calls") != new.get("tool_calls"):
                break
            same += 1
        stable = sum(self.sizes[:same])
        if same < min(len(self.rows), len(view)) and self.rows[same]["role"] == view[same]["role"]:
            stable += self._count(_common_start(text_of(self.rows[same]), text_of(view[same])))
        self.sizes = self.sizes[:same] + [measure(row, self._count) for row in view[same:]]
        self.rows = list(view)
        return sum(self.sizes), stable, same

    def facts(self) -> set[str]:
        """In the newest view."""
        return {fact for row in self.rows for fact in facts_in(text_of(row))}

    def facts_within(self, room: int) -> set[str]:
        """Facts of the newest view cut down to `room` tokens: oldest verbatim rows go first, then the oldest others."""
        total = sum(self.sizes)
        left = dict(enumerate(self.rows))
        for verbatim in (True, False):
            for at, row in enumerate(self.rows):
                if total > room and row["role"] not in HEADS and (text_of(row) in self._spoken) is verbatim:
                    del left[at]
                    total -= self.sizes[at]
        for at, row in enumerate(self.rows):
            if total > room and at in left and text_of(row) not in self._spoken:
                del left[at]  # summaries that stand as system rows
                total -= self.sizes[at]
        return {fact for row in left.values() for fact in facts_in(text_of(row))}


def _common_start(one: str, other: str) -> str:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return one[:at]
    return min(one, other, key=len)
