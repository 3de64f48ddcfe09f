"""The user's sentences are looked for by the compactions behind them."""

from __future__ import annotations

from benchmarks import lasting


def test_a_sentence_is_looked_for_by_the_compactions_behind_it() -> None:
    """Not where a second row says it too."""
    rows = [{"role": "user", "content": f"Always keep rule number {at}. Yes, please."} for at in range(3)]
    watch = lasting.Watch(rows)
    watch(2, rows[:2])
    watch(3, [rows[1]])
    assert watch.found == {"sentences 1": 3, "held 1": 1}
