"""`benchmarks/reliability.py`: its bounds, and that docs/reliability.md shows what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.reliability import ATTACKS, FAULTS, HEADS, attack_table, cost_of, cost_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")


def shown(name: str) -> list[str]:
    """The lines of one table of the page."""
    found = re.search(rf"<!-- {name}: .*? -->\n(.*?)<!-- {name} end -->", PAGE, re.S)
    assert found
    return found[1].splitlines()


def test_the_page_has_a_row_for_every_fault_with_all_figures() -> None:
    """In the order of the code."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown("calls")[2:]]
    assert [row[0] for row in rows] == [fault.name for fault in FAULTS]
    assert {len(row) for row in rows} == {1 + len(HEADS)}
    assert all(int(row[-2]) <= int(row[-1]) for row in rows)


@pytest.mark.parametrize("name", ["401", "503 or a lost connection", "raises CancelledError"])
def test_a_row_of_the_page_is_what_the_command_prints(name: str) -> None:
    """And no bound is broken."""
    cost = cost_of(next(fault for fault in FAULTS if fault.name == name))
    assert cost.broken == ()
    assert cost_table([cost])[2] in shown("calls")


def test_every_class_of_attack_has_a_generator_that_is_there() -> None:
    """The page names them all."""
    assert shown("attacks") == attack_table()
    for attack in ATTACKS:
        for test in attack.tests:
            file, _, name = test.partition("::")
            text = (ROOT / file).read_text("utf-8")
            assert name in text
            assert re.search(r"@given|Random\(|RuleBasedStateMachine|seed", text), test
