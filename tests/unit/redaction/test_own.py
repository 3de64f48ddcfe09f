"""A user's own pattern that takes too long: the text is withheld, with one warning, and nobody else waits for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from context_summarize.background import with_pauses
from context_summarize.redaction.redactor import build_redactor, redact_steps

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


@pytest.mark.usefixtures("no_hang")
def test_the_same_text_is_withheld_again_without_another_search():
    """A row is rendered more than once, and is shown alike each time, so that its key stays."""
    redact = build_redactor([ENDLESS, "second"])
    assert redact is not None
    assert redact(LONG) == WITHHELD

    assert [redact(LONG) for _ in range(1_000)] == [WITHHELD] * 1_000
    assert redact("xxy") == "[redacted: own pattern]"


@pytest.mark.usefixtures("no_hang")
def test_a_slow_pattern_is_searched_beside_the_event_loop():
    """Its steps end while the search goes on, so that others have their turn between them."""
    pauses = []

    def run() -> Iterator[int]:
        pauses.append((yield from with_pauses(redact_steps(LONG, build_redactor([ENDLESS, "third"])), 1)))

    count = sum(run())

    assert pauses == [WITHHELD]
    assert count > 10
