"""Plays a recorded session through a manager, and checks each request and the history from their rows alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from context_summarize.config import Config
from context_summarize.events import FAILURE, POST_COMPACT, PRE_COMPACT, SUMMARY
from context_summarize.host_types import Provider
from context_summarize.messages.host_copy import timeless
from context_summarize.messages.reading import broken_pairs
from context_summarize.messages.rows import SOURCE, JsonRow, copy_json, equal_prefix
from context_summarize.messages.view_rows import refusal
from context_summarize.replay.result import Check, Compaction, ReplayResult, RequestSize, message_numbers, named
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.session.windows import request_budget
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure


async def replay(
    rows: Sequence[JsonRow],
    provider: Provider,
    *,
    name: str = "offline",
    config: Config | None = None,
    token_budget: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> ReplayResult:
    """Adds the rows to a new manager, requests a view before every assistant row, and checks every view.

    Args:
        provider: writes the summaries; its window gives the budget.
        name: the name by which the setting `summary_provider` refers to it.
        token_budget: tokens that a request may hold; None = what the provider's window gives.
        progress: called after every row.
    """
    config = replace(config or Config(), persistence=None)  # a replay does not write a session's history
    budget = await request_budget(config, token_budget, provider)
    result = ReplayResult(name, budget, rows=copy_json(list(rows)), numbers=message_numbers(rows), redact=config.redact)
    audit, session = _Audit(result), _Session({name: provider}, result)
    # Summaries are kept in memory unless `cache` names a store, so that a replay uses none of an earlier one.
    manager = SummarizingContextManager(session, config=config)
    await manager.prepare()
    try:
        for number, row in enumerate(rows, 1):
            if row["role"] == "assistant":
                view = await manager.get_messages_for_request(token_budget, provider=provider)
                session.served(number, view)
                audit.view(number, view)
                await manager.settle()  # no time passes between turns, so that a replay always gives the same
            await manager.add_message(row)
            await asyncio.sleep(0)  # otherwise Ctrl-C waits for the next provider call
            result.history_tokens += measure(row, audit.count)
            progress()
        audit.history(await manager.get_messages())
        result.totals = await manager.statistics()
    finally:
        await manager.close()
    return result


class _Session:
    """The parts of a coordinator that the manager uses: the providers by name, and hooks for its events."""

    def __init__(self, providers: dict[str, Provider], result: ReplayResult) -> None:
        self.hooks = self
        self._providers = providers
        self._result = result
        self._reason = ""
        self._made: list[dict[str, Any]] = []
        """The compactions of the current request."""

    def get(self, mount_point: str) -> dict[str, Provider] | None:
        return self._providers if mount_point == "providers" else None

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        if event == PRE_COMPACT:
            self._reason = data["reason"]
        elif event == SUMMARY:
            self._result.made_summaries += 1
        elif event == FAILURE:
            self._result.last_failure = data["error"]
        elif event == POST_COMPACT and data["tokens_saved"]:  # else it was announced and not made
            self._made.append({**data, "reason": self._reason})

    def served(self, row: int, view: Sequence[JsonRow]) -> None:
        """Records the view that answered the request before this row, counted from 1."""
        ours = tuple(shown for shown in view if (shown.get("metadata") or {}).get("source") == SOURCE)
        self._result.compactions += [Compaction(row, event, ours) for event in self._made]
        self._made = []


class _Audit:
    """Measures and checks the rows that a manager returns, and writes the findings into the result."""

    def __init__(self, result: ReplayResult) -> None:
        self._result = result
        self.count = TokenCounter().count
        self._sizes: list[int] = []
        self._kept = Check("History intact", "every row is kept as it was added")
        self._paired = Check("Pairs intact", "each call is followed by its results")
        self._valid = Check("Valid rows", "Amplifier accepts each row")
        self._within = Check("Within budget", "no request is too large")
        result.checks = [self._kept, self._paired, self._valid, self._within]

    def view(self, number: int, rows: list[JsonRow]) -> None:
        """Checks the view that was requested before row `number`, counted from 1 over all rows."""
        result, where = self._result, f"the request before {named(self._result.numbers, number)}"
        same = equal_prefix(result.last_view, rows)
        # Rows that equal those of the previous view were checked and measured with it.
        invalid = [
            f"{where}, view row {at}: {problem}"
            for at, row in enumerate(rows[same:], same)
            if (problem := refusal(row)) is not None
        ]
        self._valid.note(invalid)
        problems = [] if invalid else broken_pairs(rows)
        self._paired.note([f"{where}, view {problem}" for problem in problems[:1]])
        self._sizes[same:] = [measure(row, self.count) for row in rows[same:]]
        tokens = sum(self._sizes)
        over = tokens > result.budget
        self._within.note([f"{where} holds {tokens:,} tokens, the budget is {result.budget:,}"] if over else [])
        result.requests.append(RequestSize(number, tokens, result.history_tokens, sum(self._sizes[:same])))
        result.last_view = rows

    def history(self, kept: Sequence[JsonRow]) -> None:
        """Compares the rows that were added with the rows that the manager returns, which have a time."""
        fed = self._result.rows
        pairs = enumerate(zip(map(timeless, fed), map(timeless, kept), strict=False), 1)
        changed = [
            f"{named(self._result.numbers, at)} is not what was added" for at, (added, held) in pairs if added != held
        ]
        if len(kept) != len(fed):
            changed.append(f"{len(fed):,} rows were added, {len(kept):,} are kept")
        self._kept.note(changed)
