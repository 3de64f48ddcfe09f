"""A user's own pattern that takes too long: the text is withheld, with one warning."""

from __future__ import annotations

import logging
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from context_summarize.redaction import own
from context_summarize.redaction.marks import WITHHELD
from context_summarize.redaction.own import OwnPatterns
from context_summarize.redaction.redactor import build_redactor
from context_summarize.redaction.spans import Span

ENDLESS = r"(x+x+)+y"
LONG = "x" * 5_000
SECONDS = 0.05
"""Allowed for a text; what does not end in it does not end in a year."""


@pytest.mark.usefixtures("no_hang")
def test_a_text_that_takes_too_long_is_withheld(caplog):
    patterns = OwnPatterns([ENDLESS], SECONDS)

    with caplog.at_level(logging.WARNING):
        assert patterns(LONG) == WITHHELD
        assert patterns(LONG + "z") == WITHHELD

    assert patterns("xxy and more") == "[redacted: own pattern] and more"
    assert patterns(WITHHELD) == WITHHELD
    [line] = [record.getMessage() for record in caplog.records]
    assert "redact: '(x+x+)+y' took longer than 0.05 s for a text of 5000 characters" in line
    assert "change the pattern" in line


@pytest.mark.usefixtures("no_hang")
def test_the_same_text_is_always_shown_alike(monkeypatch):
    """A row is rendered more than once: it is not searched again, so that its key stays."""
    patterns = OwnPatterns([ENDLESS], SECONDS)
    assert patterns(LONG) == WITHHELD

    def nothing(*_: object) -> Generator[None, None, list[Span]]:
        yield
        return []

    monkeypatch.setattr(own, "_found", nothing)
    assert patterns(LONG) == WITHHELD
    assert patterns("xxy") == "xxy"


@pytest.mark.usefixtures("no_hang")
def test_the_known_formats_are_found_beside_a_slow_pattern():
    redact = build_redactor([r"CASE-\d{4}", "nothing"])
    assert redact is not None
    assert redact("CASE-1234 " + "gl" + "pat-" + "a1" * 10) == "[redacted: own pattern] [redacted: GitLab token]"


def test_a_mark_for_a_withheld_text_is_left_alone():
    redact = build_redactor([r"\w+"])
    assert redact is not None
    assert redact(f"a {WITHHELD}") == f"[redacted: own pattern] {WITHHELD}"


def test_a_text_with_many_matches_is_searched_in_steps_whose_pauses_do_not_count(monkeypatch):
    """A long text, searched in slices beside other work, is not withheld for the time of the others."""
    patterns = OwnPatterns([r"CASE-\d{4}", "nothing"], seconds=1.0)
    now = 0.0
    monkeypatch.setattr("context_summarize.redaction.own.time.thread_time", lambda: now)

    steps = patterns.steps("CASE-1234 " * 1_000)
    result: list[str] = []

    def taken() -> Generator[None, None, None]:
        result.append((yield from steps))

    turns = 0
    for _ in taken():
        turns, now = turns + 1, now + 10.0

    assert turns > 1_000
    assert result == ["[redacted: own pattern] " * 1_000]


@pytest.mark.usefixtures("no_hang")
def test_a_long_search_is_done_in_a_thread_while_others_have_their_turn(monkeypatch):
    """Nothing is withheld or missed for it; a quick search needs no thread."""
    started: list[str | None] = []

    class Noted(ThreadPoolExecutor):
        def __init__(self, most: int, name: str) -> None:
            started.append(name)
            super().__init__(most, name)

    monkeypatch.setattr(own, "ThreadPoolExecutor", Noted)
    text = "x" * 2_000 + " CASE-1234"
    assert OwnPatterns([r"CASE-\d{4}"])(text * 50) == ("x" * 2_000 + " [redacted: own pattern]") * 50
    assert not started

    monkeypatch.setattr(own, "_QUICK_SECONDS", 0.0)
    steps = OwnPatterns([ENDLESS], SECONDS).steps(LONG)
    assert sum(1 for _ in steps) > 2
    assert len(started) == 1

    slow = OwnPatterns([r"(x+x+)+y\d"], 60.0)
    assert slow("x" * 16 + " xxy1 " + "x" * 16 + " xxy2 end") == (
        "x" * 16 + " [redacted: own pattern] " + "x" * 16 + " [redacted: own pattern] end"
    )
    assert len(started) >= 3, "a thread for each search of the second pattern"
