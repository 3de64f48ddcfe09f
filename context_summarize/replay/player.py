"""Plays a recorded session through a manager and checks each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from context_summarize.config import Config
from context_summarize.events import POST_COMPACT, PRE_COMPACT, SUMMARY
from context_summarize.messages.json_text import copy_json
from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.replay.audit import Audit
from context_summarize.replay.result import Compaction, ReplayResult, message_numbers
from context_summarize.session.host import provider_window, request_budget
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.stores import MemoryStore
from context_summarize.tokens.counter import loaded_counter


async def replay(
    rows: Sequence[JsonRow],
    provider: Any,
    *,
    name: str = "offline",
    config: Config | None = None,
    token_budget: int | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> ReplayResult:
    """Feed the rows to a new manager, ask for a view before every assistant row, and check every view.

    Summaries are kept in memory, so that a replay finds none of an earlier one, unless `cache` says where else.

    Args:
        rows: messages as `read_session` gives them.
        provider: writes the summaries; its window gives the budget.
        name: the name under which the setting `summary_provider` finds it.
        token_budget: tokens that a request may hold; None = what the provider's window gives.
        progress: called after every row with the number of rows fed so far.

    Raises:
        TemplateError: the prompt set of the settings is incomplete.
    """
    config = replace(config or Config(), persistence=None)  # a replay does not write a session's history
    counter, numbers = await loaded_counter(), message_numbers(rows)
    result = await _blank(rows, provider, name, config, token_budget)
    audit = Audit(result, numbers, counter.count)
    session = _Session({name: provider}, result, numbers)
    store = MemoryStore() if config.cache in (None, "memory") else None
    manager = SummarizingContextManager(session, config=config, store=store)
    await manager.prepare()
    started = time.monotonic()
    try:
        for number, row in enumerate(rows, 1):
            if row["role"] == "assistant":
                view = await manager.get_messages_for_request(token_budget, provider=provider)
                session.served(number, view)
                audit.view(number, view)
                await manager.settle()  # no time passes between turns, so that a replay always gives the same views
            await manager.add_message(row)
            await asyncio.sleep(0)  # otherwise Ctrl-C waits for the next provider call
            progress(number)
        result.seconds = time.monotonic() - started
        audit.history(await manager.get_messages())
        taken = await manager.statistics()
    finally:
        await manager.close()
    result.provider_calls, result.failed_summaries = taken.calls, taken.failed
    result.provider_input_tokens, result.provider_output_tokens = taken.input_tokens, taken.output_tokens
    return result


async def _blank(
    rows: Sequence[JsonRow], provider: Any, name: str, config: Config, token_budget: int | None
) -> ReplayResult:
    """The result before the first row."""
    window = await provider_window(provider) if token_budget is None else None
    budget = await request_budget(config, token_budget, provider)
    return ReplayResult(
        provider=name,
        budget=budget,
        window=window.context if window else None,
        threshold=_threshold(config, budget) if config.auto_compact else None,
        redact=config.redact,
        rows=copy_json(list(rows)),
    )


def _threshold(config: Config, budget: int) -> int:
    """Tokens at which a compaction is due, a system prompt aside."""
    share, most = int(config.threshold_share * budget), config.threshold_tokens
    return share if most is None else min(share, most)


class _Session:
    """The part of a coordinator that the manager uses: the providers by name, and hooks that receive its events."""

    def __init__(self, providers: dict[str, Any], result: ReplayResult, numbers: Sequence[int | None]) -> None:
        self._providers = providers
        self._result = result
        self._numbers = numbers
        self._reason = ""
        self._made: list[dict[str, Any]] = []
        """Compactions of the request that is being made."""

    @property
    def hooks(self) -> _Session:
        return self

    def get(self, mount_point: str) -> Any:
        return self._providers if mount_point == "providers" else None

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        if event == PRE_COMPACT:
            self._reason = data["reason"]
        elif event == SUMMARY:
            self._result.made_summaries += 1
        elif event == POST_COMPACT:
            self._made.append({**data, "reason": self._reason})

    def served(self, row: int, view: Sequence[JsonRow]) -> None:
        """The request before this row, counted from 1, was answered with this view."""
        ours = tuple(shown for shown in view if (shown.get("metadata") or {}).get("source") == SOURCE)
        for data in self._made:
            self._result.compactions.append(
                Compaction(
                    row=row,
                    message=self._numbers[row - 1],
                    before_tokens=data["tokens"] + data["tokens_saved"],
                    after_tokens=data["tokens"],
                    segments=data["segments"],
                    merged=data["merged"],
                    from_cache=data["from_cache"],
                    fallbacks=data["fallbacks"],
                    wait_ms=data["wait_ms"],
                    reason=data["reason"],
                    made_rows=ours,
                )
            )
        self._made = []
