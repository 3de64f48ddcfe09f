"""Keeps a page small: shortens its texts to a common limit, and leaves out the middle of long lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

_LIMITS = (100_000, 20_000, 5_000, 2_000, 1_000, 500, 250, 120, 60)
"""Characters for one text, tried in this order."""


def common_limit(lengths: Iterable[int], most: int) -> int:
    """Characters for each text, so that all texts together keep at most about `most`."""
    known = tuple(lengths)
    fits = (limit for limit in _LIMITS if sum(min(length, limit) for length in known) <= most)
    return next(fits, _LIMITS[-1])


def cut(text: str, limit: int) -> str:
    """The text, or its start and how much is left out."""
    return text if len(text) <= limit else f"{text[:limit]} [… {len(text) - limit:,} characters not in this page]"


def ends(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items: one third from the start, two thirds from the end."""
    return list(items) if len(items) <= most else [*items[: most // 3], *items[len(items) - (most - most // 3) :]]
