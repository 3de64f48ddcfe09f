"""Counting text: the bundled encoding, its loading, and texts that a tokenizer takes long for."""

from __future__ import annotations

import pytest

from context_summarize.errors import ContextSummarizeError
from context_summarize.tokens import counter as tokens
from context_summarize.tokens.counter import TokenCounter


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    made = TokenCounter()
    made.count("")
    return made


def test_missing_ranks_are_named_and_tried_again(monkeypatch):
    """A file that cannot be read is a clear error, and a failure is not remembered."""
    tokens._build_encoding.cache_clear()  # the process as it is before anything was counted
    counter = TokenCounter()
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "RANKS_FILE", "none.xz")
        with pytest.raises(ContextSummarizeError, match=r"none\.xz cannot be read.*reinstall"):
            counter.count("x")
    assert counter._encoding is None
    assert counter.count("x") == 1


@pytest.mark.parametrize("text", ["some words of a line\n" * 4_000, "some words " * 8_000, "e5,2;" * 20_000])
def test_a_long_text_counts_as_the_whole_would(text, counter):
    """Pieces add up to within half a percent of the uncut text, with newlines, blanks or neither to cut at."""
    assert counter._encoding is not None
    whole = len(counter._encoding.encode_ordinary(text))
    assert counter.count(text) == pytest.approx(whole, rel=0.005)


@pytest.mark.parametrize(("text", "expected"), [("a" * 1_000_000, 125_000), (" " * 1_000_000, 7_813)])
def test_a_megabyte_of_one_character_counts(text, expected, counter):
    """tiktoken alone overflows its stack on the blanks, and older versions take minutes for the letters."""
    assert counter.count(text) == expected
