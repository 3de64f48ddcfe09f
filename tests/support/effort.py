"""How much the tests do: a little on a desk, everything in CI; the environment decides, and only this file reads it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

LONG = os.environ.get("CONTEXT_SUMMARIZE_LONG") == "1"
"""True in CI: every property runs over many examples, and rows and sessions have their full size."""

EXAMPLES = int(os.environ.get("CONTEXT_SUMMARIZE_EXAMPLES", "100" if LONG else "12"))
"""Histories that each property of the whole manager runs over."""

RUNS = int(os.environ.get("CONTEXT_SUMMARIZE_RUNS", "80" if LONG else "8"))
"""Lives of a manager that the state machine runs, 50 steps each."""

SMALL_EXAMPLES = 100 if LONG else 12
"""Examples of every other property."""


def full(long: int, short: int) -> int:
    """The size of an input: `long` in CI, `short` on a desk."""
    return long if LONG else short


def some(cases: Iterable[T], every: int) -> list[T]:
    """All cases in CI; on a desk one of so many."""
    return [*cases] if LONG else [*cases][::every]


def crossed(many: Sequence[T], few: Sequence[U]) -> list[tuple[T, U]]:
    """Each of many cases with all of a few in CI; on a desk with one of them, in turn."""
    return [*product(many, few)] if LONG else [(one, few[at % len(few)]) for at, one in enumerate(many)]


def turns(most: int = 2_000) -> Iterator[int]:
    """Turns of the event loop after which a test cancels: the first, then every sixth in CI, every 60th elsewhere."""
    return iter([*range(full(30, 4)), *range(full(30, 4), most, full(6, 60))])


HUGE = full(250_000, 100_000)
"""Characters of a text that must hang nothing; on a desk too above every threshold of the package."""
