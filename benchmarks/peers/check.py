"""Whether each contestant's adapter turns rows into the peer's own messages and back without loss."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from .base import Contestant, Row, Terms, result, spoken

RECORDING = Path(__file__).parents[2] / "examples" / "airline-desk.jsonl"


def recorded() -> list[Row]:
    """The recording's rows."""
    return [json.loads(line) for line in RECORDING.read_text("utf-8").splitlines()]


def hand_made() -> list[Row]:
    """One row of every other kind that a benchmark feeds: parallel calls, empty texts, metadata, other scripts."""
    return [
        spoken("system", "You help."),
        spoken("user", "Look into both.\n\nPlease. Ünïcode, 漢字, 🙂", meta={"row": 1}),
        spoken("assistant", "Both:", [("a", "read", {"path": "/x", "n": 1}), ("b", "read", {})], {"row": 2}),
        result("a", "read", "line one\nline two", {"row": 3}),
        result("b", "read", "", {"row": 4}),
        spoken("assistant", "", [("c", "search", {"query": {"any": ["ä", None, 1.5, True]}})]),
        result("c", "search", '{"found": 0}'),
        spoken("assistant", ""),
        spoken("user", ""),
        spoken("user", "Two user rows in a row.", meta={"row": 9, "deep": {"list": [1, "2"]}}),
        spoken("assistant", "again the same id", [("a", "read", {"path": "/y"})]),
        result("a", "read", "y", {"row": 11}),
        spoken("assistant", "an open call", [("d", "wait", {"seconds": 1})], {"row": 12}),
    ]


def lossless(contestant: type[Contestant], rows: Sequence[Row], terms: Terms) -> bool:
    """True when rows come back from the contestant's own messages as they were.

    Raises:
        ImportError: the peer is not installed.
    """
    return contestant(terms).convert(rows) == list(rows)


async def no_answer(shown: str, max_output: int | None) -> str:
    """For terms under which nothing is summarised."""
    raise AssertionError(f"asked for a summary of {len(shown):,} characters, of {max_output} tokens at most")


def problems(contestants: Sequence[type[Contestant]]) -> dict[str, str]:
    """Contestant → what is wrong with it: not installed, or its adapter loses something."""
    terms = Terms(answer=no_answer, count=len, budget=100_000)
    found: dict[str, str] = {}
    for contestant in contestants:
        try:
            lost = [
                name
                for name, rows in (("the recording", recorded()), ("the rows made by hand", hand_made()))
                if not lossless(contestant, rows, terms)
            ]
        except ImportError as error:
            found[contestant.title] = f"not installed, or without this class ({error}); run make bench-peers"
            continue
        if lost:
            found[contestant.title] = f"its adapter does not convert {' and '.join(lost)} without loss"
    return found


def versions(contestants: Sequence[type[Contestant]]) -> dict[str, str]:
    """Distribution → version, of all that stand beside the contestants' figures."""
    names = sorted({name for contestant in contestants for name in contestant.packages})
    return {name: metadata.version(name) for name in names}
