"""`measure`: tokens of one row. `input_tokens`: those of a whole request, as a provider reports them."""

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


_UNCOUNTED = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic's names of cached tokens, which its `input_tokens` leaves out. OpenAI's figures hold the cached tokens."""


def input_tokens(usage: Any) -> int:
    """Returns the tokens that a provider read for an answer, cached ones too; 0 if `usage` does not say.

    `usage` is what OpenAI's or Anthropic's SDK has as `response.usage`, or a mapping with the same names.
    """

    def figure(name: str) -> int:
        value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
        return value if type(value) is int and value > 0 else 0

    return figure("prompt_tokens") or sum(map(figure, ("input_tokens", *_UNCOUNTED)))
