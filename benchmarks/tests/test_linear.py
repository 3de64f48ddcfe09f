"""The arithmetic of `benchmarks/linear.py`, and that it leaves no pattern out. Nothing here asserts a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchmarks import linear
from benchmarks.linear import BAR, FLOOR, Growth, hostile, normalisations, patterns, worst
from benchmarks.linear_lists import LONG, SHORT, UNITS
from context_summarize.redaction.formats import FORMATS


def growth(short: float, long: float, name: str = "x") -> Growth:
    return Growth(name, "a", "", short, long)


@pytest.mark.parametrize(
    ("short", "long", "ratio", "is_linear"),
    [(1.0, 4.0, 4.0, True), (1.0, 6.0, 6.0, True), (1.0, 6.5, 6.5, False), (1.0, 16.0, 16.0, False)],
)
def test_the_ratio_of_two_times_decides(short, long, ratio, is_linear):
    assert growth(short, long).ratio == ratio
    assert growth(short, long).is_linear is is_linear


def test_times_that_are_noise_count_as_four():
    assert growth(FLOOR / 100, FLOOR / 2).ratio == LONG / SHORT <= BAR
    assert growth(0.0, FLOOR).ratio > BAR


def test_the_worst_is_the_steepest_and_of_equals_the_slowest():
    assert worst([growth(1.0, 4.0), growth(1.0, 16.0, "y"), growth(2.0, 8.0)]).name == "y"
    assert worst([growth(1.0, 4.0), growth(2.0, 8.0, "y")]).name == "y"


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_hostile_text_is_as_long_as_it_should_be(unit):
    text = hostile(unit, "!", SHORT)
    assert SHORT - len(unit) < len(text) <= SHORT + 1
    assert text.endswith("!")


def test_every_pattern_of_redaction_is_measured():
    names = [piece.name for piece in patterns()]
    assert len(names) == len(set(names)) > len(FORMATS) + 50
    assert {"redaction.assigned._ASSIGNED", "redaction.views._JOINED", "facts.patterns.URL"} <= set(names)
    assert [piece.name for piece in normalisations()][:3] == ["redact", "decomposed", "comparable"]


def test_a_report_says_what_is_over_the_bar(monkeypatch, capsys):
    def made() -> Iterator[linear.Piece]:
        yield linear.Piece("good", len)
        yield linear.Piece("bad", re.compile("a+b").search)

    monkeypatch.setattr(linear, "suspicion", lambda piece, unit, ending: (1.0, 0.0))
    monkeypatch.setattr(
        linear,
        "measured",
        lambda piece, unit, ending: growth(1.0, 16.0 if piece.name == "bad" else 4.0, piece.name),
    )

    assert linear.report(made(), ["", "!"]) is False
    good, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("     4.0")
    assert bad.startswith("!   16.0")
