"""A user's own pattern that takes too long: the text is withheld, with one warning."""

from __future__ import annotations

import logging
from collections.abc import Generator

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
