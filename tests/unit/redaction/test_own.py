"""A user's own pattern that takes too long: the text is withheld, with one warning, and nobody else waits for it."""

from __future__ import annotations

import logging

import pytest

from context_summarize.redaction import build_redactor

ENDLESS = r"(x+x+)+y"
LONG = "x" * 5_000
"""What does not end at once does not end in a year."""
WITHHELD = "[withheld: a redact pattern took too long]"


@pytest.mark.usefixtures("no_hang")
def test_a_text_that_takes_too_long_is_withheld(caplog):
    redact = build_redactor([ENDLESS, "first"])
    assert redact is not None

    with caplog.at_level(logging.WARNING):
        assert redact(LONG) == WITHHELD
        assert redact(LONG + "z") == WITHHELD

    assert redact("xxy and more") == "[redacted: own pattern] and more"
    assert redact(WITHHELD) == WITHHELD
    [line] = [record.getMessage() for record in caplog.records]
    assert "redact: '(x+x+)+y' fails for a text of 5000 characters" in line
    assert "change the pattern" in line


@pytest.mark.parametrize(
    ("pattern", "text", "clean"),
    [
        (r"(?x) CASE- \d+  # a number", "CASE-12 [redacted: own pattern] CASE-3", "# [redacted: own pattern] #"),
        (r"(\w)\1{3}|^b", "aaaa b [redacted: JWT] bbbb", "# b [redacted: JWT] #"),
        (r"(?i)JWT|jwt\]", "jwt [redacted: JWT] JWT", "# [redacted: JWT] #"),
        (r"\b", "some words", "some words"),
        (r"redacted.*", "a [redacted: JWT] b redacted c", "a [redacted: JWT] b #"),
    ],
)
def test_patterns_of_any_kind_pass_marks_over(pattern, text, clean):
    """Flags, comments, groups by number and empty matches mean what they mean alone."""
    redact = build_redactor([pattern])
    assert redact is not None

    assert redact(text) == clean.replace("#", "[redacted: own pattern]")
