"""`benchmarks/memory` on one repetition of the recording: the planted facts, and the command that shows parts."""

from __future__ import annotations

import sys
from io import StringIO

import pytest
from rich.console import Console

from benchmarks.field.model import CODE, PROSE
from benchmarks.memory import __main__ as command
from benchmarks.memory.facts import FACTS_TARGET, measure_facts, show_facts
from benchmarks.memory.sessions import BUDGET, Run, session

FACTS = 40


async def test_of_a_short_session_the_facts_are_still_in_the_last_view() -> None:
    """Facts of both kinds are counted, every view fits, and a summariser that forgets one in twenty costs no more."""
    run, kept = await measure_facts(1, FACTS, 0, {})
    assert kept.keys() == {CODE, PROSE}
    assert sum(planted for _, planted in kept.values()) == FACTS
    assert all(0 < held <= planted for held, planted in kept.values())
    assert sum(held for held, _ in kept.values()) >= FACTS_TARGET * FACTS
    assert run.over_budget == 0
    assert max(run.view_tokens) <= BUDGET < run.history_tokens
    assert run.requests == len(run.view_tokens) == len(run.summary_tokens)
    assert 0 < run.calls < run.requests
    assert run.depth >= 1


def test_the_table_of_facts_has_a_line_for_each_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says whether the mean of the seeds meets the limit."""

    async def measured(copies: int, facts: int, seed: int, settings: object) -> object:
        return Run(1_000, 10, requests=1, view_tokens=[7]), {PROSE: (seed, 4), CODE: (4, 4)}

    monkeypatch.setattr("benchmarks.memory.facts.measure_facts", measured)
    shown = StringIO()
    console = Console(file=shown, width=140)
    assert show_facts(console, 1, 8, [4, 4], {"summary_tokens": 200})
    assert "summary_tokens: 200" in shown.getvalue()
    assert shown.getvalue().count("4 of 4 │      4 of 4 │ 100.0%") == 2
    assert not show_facts(console, 1, 8, [4, 0], {})
    assert "Mean of 2 seeds: 75.0%" in shown.getvalue()


def test_no_two_repetitions_say_the_same() -> None:
    """So that no summary serves two of them."""
    said = [row["content"] for row in session(2) if row["role"] == "user"]
    assert len(set(said)) == len(said)


def test_the_command_names_the_parts_that_missed_their_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And exits with 1; a part that it does not have is an error of usage."""
    monkeypatch.setattr(command, "show_facts", lambda *_: False)
    monkeypatch.setattr(command, "show_waiting", lambda *_: True)
    monkeypatch.setattr(sys, "argv", ["memory", "facts", "waiting"])
    assert command.main() == 1
    assert "Not met: facts" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["memory", "waiting"])
    assert command.main() == 0
    monkeypatch.setattr(sys, "argv", ["memory", "nothing"])
    with pytest.raises(SystemExit):
        command.main()
    assert "no part nothing; there are lengths, resume, facts, waiting" in capsys.readouterr().err
