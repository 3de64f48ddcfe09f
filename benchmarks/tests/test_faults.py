"""`benchmarks/faults` with our own contestant alone: the figures that docs/reliability-peers.md shows for it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from benchmarks import peers
from benchmarks.faults.outcome import CALLS_PER_REQUEST
from benchmarks.faults.playing import Report, run
from benchmarks.faults.report import markdown
from benchmarks.faults.summariser import BUDGET, FACT, FACTS, FAULTS, planted


@pytest.fixture(scope="module")
def report() -> Report:
    """One run of every fault."""
    logging.disable(logging.CRITICAL)
    try:
        return asyncio.run(run((peers.Ours,)))
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_turn_survives_within_the_budget_with_its_pairs(report: Report, fault: str) -> None:
    outcome = next(one for one in report.outcomes if one.fault == fault)
    assert outcome.requests > 150
    assert outcome.lost_turns == 0, outcome.errors
    assert outcome.over_budget == 0
    assert 0 < outcome.largest <= outcome.budget
    assert outcome.broken_pairs == 0
    assert outcome.lost_rows == 0
    assert outcome.calls > 0
    assert outcome.calls_per_request <= CALLS_PER_REQUEST
    assert report.broken == []


async def test_a_sound_summariser_keeps_every_fact(report: Report) -> None:
    assert next(one for one in report.outcomes if one.fault == "none").facts == FACTS


def test_a_hundred_different_facts_are_planted_in_user_rows() -> None:
    rows = planted()
    found = [(row["role"], fact) for row in rows for fact in FACT.findall(peers.text_of(row))]
    assert len({fact for _, fact in found}) == FACTS == len(found)
    assert {role for role, _ in found} == {"user"}


async def test_the_table_has_a_line_for_every_fault_and_names_what_was_not_run(report: Report) -> None:
    table = markdown(report, BUDGET)
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(FAULTS)
    assert len({line.count("|") for line in lines}) == 1
    assert "amplifier-core" in table


async def test_a_peer_that_is_not_installed_is_said_to_be_missing() -> None:
    class Absent(peers.Ours):
        title = "absent"

        def __init__(self, terms: peers.Terms) -> None:
            raise ModuleNotFoundError("No module named 'absent'")

    report = await run((Absent,), rows=20, facts=5)
    assert report.outcomes == []
    assert "not installed" in report.missing["absent"]
    assert "Not run: absent" in markdown(report, BUDGET)


async def test_a_lossy_adapter_is_not_measured() -> None:
    class Lossy(peers.Ours):
        title = "lossy"

        def convert(self, rows: Any) -> list[peers.Row]:
            return list(rows)[1:]

    report = await run((Lossy,), rows=20, facts=5)
    assert report.outcomes == []
    assert "without loss" in report.missing["lossy"]


async def test_what_a_contestant_does_wrong_is_counted() -> None:
    class Careless(peers.Ours):
        """Forgets everything but the last row, shows one summary that is too long, and fails in the end."""

        title = "careless"

        def __init__(self, terms: peers.Terms) -> None:
            self._terms = terms
            self._rows: list[peers.Row] = []

        async def add(self, row: peers.Row) -> None:
            self._rows.append(row)

        async def view(self) -> list[peers.Row]:
            await self._terms.ask("x")
            if len(self._rows) > 50:
                raise RuntimeError("no more")
            return [{"role": "user", "content": "x " * 20_000}, self._rows[-1]]

        async def close(self) -> None:
            pass

    report = await run((Careless,), faults=("none",), rows=60, facts=5)
    (outcome,) = report.outcomes
    assert outcome.lost_turns == outcome.errors["RuntimeError"] > 0
    assert outcome.over_budget > 0
    assert outcome.largest > outcome.budget
    assert outcome.broken_pairs > 0
    assert outcome.lost_rows > 30, "the one summary stands for what was gone when it came, and for nothing later"
    assert outcome.calls_per_request == 1
    assert len(outcome.broken) == 5
    assert report.broken == [], "only ours decides the exit code"
