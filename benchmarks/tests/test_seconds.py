"""Waiting in real seconds: what is played, and what the table says."""

from __future__ import annotations

import pytest

from benchmarks.field import seconds
from benchmarks.field.seconds import Waited, play, shortened, table
from context_summarize.replay.session_files import read_session


async def test_a_session_is_played_and_its_waits_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours, with summaries that its validation takes."""
    monkeypatch.setattr(seconds, "REQUEST_SECONDS", 0.001)
    rows = read_session(seconds.RECORDING)[:80]
    waited = await play("ours", rows, 4_000)
    assert waited.error == ""
    assert waited.calls > 0
    assert len(waited.waits) == waited.requests == sum(row["role"] == "assistant" for row in rows)
    assert 0 < waited.worst <= waited.waited < waited.seconds


def test_the_summariser_takes_no_mark_of_a_row_and_keeps_to_its_length() -> None:
    """Or an answer would be refused for what it copies."""
    lines = "\n".join(f"#{at} user\nThe reservation number {at} was moved." for at in range(99))
    said = shortened(f"=== transcript ===\n{lines}", 20)
    assert said.startswith("The reservation number 0 was moved.\nThe reservation number 8")
    assert len(said) == 60
    assert shortened("short", None) == "Nothing was said."


def test_ours_is_compared_with_the_best_peer_that_got_to_the_end() -> None:
    """A peer that stopped, or never summarised, waits for nothing."""
    played = [
        Waited("ours", requests=9, waited=1.0, calls=3),
        Waited("Stopped", requests=2, waited=0.1, calls=1, error="RuntimeError: too long"),
        Waited("Idle", requests=9, waited=0.0),
        Waited("Peer", requests=9, waited=4.0, calls=2),
    ]
    text = table(played)
    assert text.splitlines()[-1] == "ours waits 0.25x as long as Peer"
    assert "| Stopped (stopped: RuntimeError: too long) | 0.10 |" in text
