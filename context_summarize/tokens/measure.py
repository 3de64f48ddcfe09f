"""Tokens of one row as we count them, and tokens of a request's input as a provider reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import countable_items

ROW_OVERHEAD = 3
"""Tokens that wrap one message, as OpenAI states for its chat models; the meter's constant covers the rest."""
IMAGE_TOKENS = 1_600
"""Tokens of an image: what Anthropic charges for the largest image that it does not scale down."""
Count = Callable[[str], int]


def measure(raw: JsonRow, count: Count) -> int:
    """Returns the tokens of one row: its public text, calls and thinking, a fixed figure per image, and wrapping."""
    items = countable_items(raw)
    return ROW_OVERHEAD + sum(count(item) if isinstance(item, str) else IMAGE_TOKENS for item in items)


def input_tokens(usage: Any) -> int:
    """Returns the input tokens that a provider's usage, a mapping or an object, reports.

    What the provider's cache writes counts, and what it reads: some providers report input without reads, so reads that
    exceed the input are not part of it.
    """
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    figures = (usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None) for name in names)
    sent, read, written = (figure if type(figure) is int and figure > 0 else 0 for figure in figures)
    return sent + written + (read if read > sent else 0)
