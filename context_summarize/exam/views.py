"""The views of a session that an exam compares: its last request, with `recall` or without, and its newest rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from context_summarize.config import Config
from context_summarize.errors import CommandError
from context_summarize.host_types import Provider
from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.recall.tools import RecallTool
from context_summarize.replay.result import message_numbers, row_text
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.tokens.measure import Count, measure
from context_summarize.transcript.marks import mark

ARMS = {"request": "last request", "recall": "with recall", "newest": "newest rows"}
"""The views by their names in the file, and in the table."""


@dataclass(frozen=True, slots=True)
class Views:
    """Texts of one session, without secrets."""

    request: str
    newest: str
    """As many of the newest rows as have the size of the request."""
    tokens: int
    """Of the request."""
    summarised: Sequence[str]
    """The messages that the request shows as summaries, each under its number."""
    summaries: str
    """What stands for them."""
    recall: RecallTool


@asynccontextmanager
async def views_of(
    rows: Sequence[JsonRow],
    provider: Provider,
    config: Config,
    count: Count,
    clean: Callable[[str], str],
) -> AsyncIterator[Views]:
    """Yields the views of a session that was played with these settings; its summaries are in the cache.

    Raises:
        CommandError: nothing of it is summarised.
    """
    manager = SummarizingContextManager(config=config)
    try:
        await manager.set_messages(rows)
        view = await manager.get_messages_for_request(provider=provider)
        ours = [row for row in view if (row.get("metadata") or {}).get("source") == SOURCE]
        until = max((row["metadata"]["messages"][1] for row in ours if "messages" in row["metadata"]), default=0)
        if not until:
            smaller = "give a smaller --window, or --config max_tokens=20000"
            raise CommandError(f"the last request holds the whole session, nothing is summarised; {smaller}")
        tokens = sum(measure(row, count) for row in view)
        numbered = zip(message_numbers(rows), rows, strict=True)
        yield Views(
            request=clean(_text(view)),
            newest=clean(_text(newest(rows, tokens, count))),
            tokens=tokens,
            summarised=[clean(f"{mark(at)} {_text([row])}") for at, row in numbered if at is not None and at <= until],
            summaries=clean(_text(ours)),
            recall=RecallTool(lambda: manager),
        )
    finally:
        await manager.close()


def newest(rows: Sequence[JsonRow], room: int, count: Count) -> list[JsonRow]:
    """Returns as many of the newest rows as fit into so many tokens."""
    at = len(rows)
    while at and (size := measure(rows[at - 1], count)) <= room:
        room, at = room - size, at - 1
    return list(rows[at:])


def _text(rows: Sequence[JsonRow]) -> str:
    return "\n\n".join(f"{row['role']}\n{row_text(row)}" for row in rows)
