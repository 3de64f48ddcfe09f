"""Histories of any length: the recorded session with other call ids, and tool sessions between its repetitions."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.testing import tool_session

RECORDING = Path(__file__).parents[2] / "examples" / "airline-desk.jsonl"
TURNS = 80
"""Turns of the tool session after each repetition of the recording."""

Row = dict[str, Any]


def endless() -> Iterator[Row]:
    """Rows without end; call ids and users' words differ between repetitions, the system prompt comes once."""
    lines = RECORDING.read_text("utf-8").splitlines()
    copy = 0
    while True:
        for at, line in enumerate(lines):
            row: Row = json.loads(line.replace('"call_', f'"call_{copy}_'))
            if row["role"] == "system" and copy:
                continue
            if row["role"] == "user" and isinstance(row["content"], str):
                row["content"] = f"{row['content']} (case {copy}-{at})"
            yield row
        yield from tool_session(TURNS, size=250, start=copy * TURNS)
        copy += 1


def rows(count: int) -> list[Row]:
    """So many rows, out of the sight of the garbage collector: they are the benchmark's own."""
    made = list(islice(endless(), count))
    gc.collect()
    gc.freeze()
    return made


async def tokens_per_row(sample: int = 1_700) -> float:
    """Mean tokens of a row, as a manager counts them; loads the token ranks besides, which are one per process."""
    manager = SummarizingContextManager()
    await manager.set_messages(rows(sample))
    tokens = await manager.get_token_count()
    await manager.close()
    return tokens / sample
