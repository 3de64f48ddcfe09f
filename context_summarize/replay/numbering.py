"""The numbers of messages, as the frames of summaries and the recall tool count them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow


def message_numbers(rows: Iterable[JsonRow]) -> list[int | None]:
    """The number of each row: rendered rows from 1. None for a row that no summariser reads, such as a system row."""
    rendered = [int(analyse(row).rendered) for row in rows]
    return [number if is_message else None for number, is_message in zip(accumulate(rendered), rendered, strict=True)]


def named(numbers: Sequence[int | None], row: int) -> str:
    """`message 7`; `row 9` for a row without a number. `row` counts from 1 over all rows."""
    number = numbers[row - 1] if row <= len(numbers) else None
    return f"row {row:,}" if number is None else f"message {number:,}"
