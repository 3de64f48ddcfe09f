"""`measure`: tokens of one row."""

from __future__ import annotations

from collections.abc import Callable

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
