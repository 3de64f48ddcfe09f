"""The data sets by name: what each is, the window that it is played with, and its chats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from benchmarks.real import beam, locomo, lost, pi, recordings
from benchmarks.real.chats import Chat


@dataclass(frozen=True, slots=True)
class DataSet:
    """Chats that are reported together."""

    name: str
    title: str
    """What it is, for the report."""
    licence: str
    load: Callable[[], list[Chat]]
    """Raises DataMissingError where it is not fetched."""
    budget: int = 40_000
    """Tokens that a request may hold."""


_ALL = (
    DataSet(
        "BEAM-100K",
        "generated conversations with probing questions; chats 1 to 10",
        "none stated",
        partial(beam.load_all, "100K"),
    ),
    DataSet("LoCoMo", "ten chats of two friends over months", "CC BY-NC 4.0", locomo.load_all, 8_000),
    DataSet("airline", "a recorded agent session with tools, in examples/", "MIT", recordings.load_all),
    DataSet("pi", "synthetic project state, dense with exact values, and tool calls", "MIT", pi.load_all),
    DataSet("d80", "Lost-in-Compaction: LongMemEval facts in a padded chat", "research use", lost.load_all),
    DataSet(
        "BEAM-500K",
        "generated conversations with probing questions; chats 1 to 4",
        "none stated",
        partial(beam.load_all, "500K"),
    ),
)
SETS: Mapping[str, DataSet] = {one.name: one for one in _ALL}
"""In the order in which they are played and reported."""


@cache
def chats(name: str) -> tuple[Chat, ...]:
    """The chats of a set, read once.

    Raises:
        DataMissingError: it is not fetched.
    """
    return tuple(SETS[name].load())
