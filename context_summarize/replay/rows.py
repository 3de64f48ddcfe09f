"""Rows as a reader of a recording sees them: their numbers and their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from context_summarize.messages.json_text import compact_json
from context_summarize.messages.reading import analyse, block_type
from context_summarize.messages.rows import CALL_BLOCKS, JsonRow
from context_summarize.messages.text import content_text
from context_summarize.transcript.rows import call_line


def message_numbers(rows: Iterable[JsonRow]) -> list[int | None]:
    """The number of each row, as frames and recall count: rendered rows from 1, None for the rest."""
    rendered = [analyse(row).rendered for row in rows]
    return [number if shown else None for number, shown in zip(accumulate(rendered), rendered, strict=True)]


def named(numbers: Sequence[int | None], row: int) -> str:
    """`message 7`; `row 9` for a row without a number. `row` counts from 1 over all rows."""
    number = numbers[row - 1] if row <= len(numbers) else None
    return f"row {row:,}" if number is None else f"message {number:,}"


def row_text(row: JsonRow) -> str:
    """What a row says, whole: its text and results, then a line for each call. Thinking is left out."""
    calls = analyse(row).calls
    content = row.get("content")
    if calls and isinstance(content, list | tuple):
        content = [block for block in content if block_type(block) not in CALL_BLOCKS]
    lines = [content_text(content), *(call_line(call.name, compact_json(call.arguments)) for call in calls)]
    return "\n".join(line for line in lines if line)
