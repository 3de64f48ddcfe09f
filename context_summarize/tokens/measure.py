"""`measure`: tokens of one row."""

from __future__ import annotations

from collections.abc import Callable

from context_summarize.background import Steps, finished
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import countable_items
from context_summarize.tokens.counter import PIECE_CHARS, count_steps

ROW_OVERHEAD = 3
"""Tokens that wrap one message, as OpenAI states for its chat models; the meter's constant covers the rest."""
IMAGE_TOKENS = 1_600
"""The price of an image: what Anthropic takes for the largest that it does not scale down."""
Count = Callable[[str], int]


def measure(raw: JsonRow, count: Count) -> int:
    """Tokens of one row: its public text, calls and thinking, a flat price for each image, and the wrapping."""
    return finished(measure_steps(raw, count))


def measure_steps(raw: JsonRow, count: Count) -> Steps[int]:
    """The same as `measure`, a text or a piece of one a step."""
    total = ROW_OVERHEAD
    for item in countable_items(raw):
        if not isinstance(item, str):
            total += IMAGE_TOKENS
        elif len(item) <= PIECE_CHARS:
            total += count(item) if item else 0
        else:
            total += yield from count_steps(item, count)
        yield
    return total
