"""Values that the tests of single stores keep in them."""

from __future__ import annotations

from context_summarize.core.nodes import CompactionRecord, Node, Summary
from context_summarize.facts.fact import Fact


def summary(key: str, text: str = "Goal: none", *, fallback: bool = False) -> Summary:
    return Summary(
        key=key,
        level=1,
        text=text,
        ledger=(Fact("id", "HAT136", 2), Fact("path", "src/\ud800.py")),
        tokens=5,
        source_tokens=50,
        fallback=fallback,
        provider="p",
        model="m",
        usage={"input_tokens": 7, "output_tokens": 2, "attempts": 1},
        cost_usd="0.01",
        created=1.5,
        coverage=0.5,
        directives=("answer in Dutch",),
    )


def record(hash_: str, frontier: int = 3) -> CompactionRecord:
    leaf = Node("k1", 0, 0, 0, 2, 100, 512)
    rest = Node("k2", 0, -1, 2, 3, 100, 512, (), "focus")
    node = Node("k3", 1, -1, 0, 3, 150, 0, (leaf, rest))
    return CompactionRecord(hash_, frontier, 9, 512, 100, (node,), ((1, 0, 64, "ab"),), 4, 2.5)
