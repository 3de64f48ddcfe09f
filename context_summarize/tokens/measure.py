"""Tokens of one row as we count them, and tokens of a request's input as a provider reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


_APART = ("cache_write_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""Names of cached tokens that `input_tokens` leaves out: Amplifier's, and Anthropic's own."""


def input_tokens(usage: object) -> int:
    """Returns the input tokens that a usage reports, cached ones too; 0 if it does not say.

    `usage` is Amplifier's, or what OpenAI's or Anthropic's SDK has as `response.usage`; a mapping or an object. Some of
    Amplifier's providers report input without `cache_read_tokens`, so reads that exceed the input are not part of it.
    """
    if whole := figure(usage, "prompt_tokens"):
        return whole
    sent, read = figure(usage, "input_tokens"), figure(usage, "cache_read_tokens")
    return sent + sum(figure(usage, name) for name in _APART) + (read if read > sent else 0)


def figure(usage: object, name: str) -> int:
    """Returns a figure of a usage; 0 if it is no positive whole number."""
    value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
    return value if type(value) is int and value > 0 else 0
