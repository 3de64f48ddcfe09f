"""options.py: sizes in tokens, as people write them."""

from __future__ import annotations

import click
import pytest

from context_summarize.cli.options import Tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("40000", 40_000), ("40k", 40_000), ("40K", 40_000), ("1.5m", 1_500_000), ("40_000", 40_000), ("40,000", 40_000)],
)
def test_sizes_may_be_written_short(text: str, tokens: int) -> None:
    """k is a thousand, M a million."""
    assert Tokens(least=1).convert(text, None, None) == tokens


@pytest.mark.parametrize("text", ["", "k", "40kk", "4x", "1.5", "nan", "inf", "0", "-4k"])
def test_anything_else_is_refused_with_what_was_given(text: str) -> None:
    """One line says what is expected."""
    with pytest.raises(click.BadParameter, match=r"tokens|less than"):
        Tokens(least=1).convert(text, None, None)
