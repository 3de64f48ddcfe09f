"""`measure`: tokens of one row."""

from __future__ import annotations

from collections.abc import Callable

from context_summarize.messages.countable import countable
from context_summarize.messages.rows import JsonRow
from context_summarize.tokens.images import image_tokens

ROW_OVERHEAD = 3
"""Tokens that wrap one message, as OpenAI states for its chat models; the meter's constant covers the rest."""
Count = Callable[[str], int]


def measure(raw: JsonRow, count: Count) -> int:
    """Tokens of one row: its public text, calls and thinking, images by their size, and the wrapping."""
    texts, images = countable(raw)
    return ROW_OVERHEAD + sum(count(text) for text in texts if text) + sum(image_tokens(image) for image in images)
