"""Plays a recorded session through a manager and checks each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from context_summarize.config import Config
from context_summarize.events import POST_COMPACT, PRE_COMPACT, SUMMARY
from context_summarize.messages.copying import copy_json
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.counted import CountedProvider
from context_summarize.replay.audit import Audit
from context_summarize.replay.made_summaries import MadeSummaries
from context_summarize.replay.numbering import message_numbers
from context_summarize.replay.result import CompactionLine, ReplayResult
from context_summarize.replay.views import ViewRecorder
from context_summarize.session.host import Window, provider_window, request_budget
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.stores import MemoryStore
from context_summarize.tokens.counter import loaded_counter

_PRIVATE = ("cache", "persistence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a recording is played."""

    provider: Any
    """Writes the summaries; its window gives the budget."""
    name: str
    """The name under which `summary_provider` finds it."""
    source: str = ""
    """What is replayed, as a report names it."""
    config: Config = field(default_factory=Config)
    token_budget: int | None = None
    """Tokens that a request may hold; None = what the provider's window gives."""
    window: Window | None = None
    """The window that gives `token_budget`, where one does."""
    notes: tuple[str, ...] = ()
    """What was chosen for the user because an option could not be met: a sentence each."""


async def replay(
    rows: Sequence[JsonRow],
    setup: Setup,
    *,
    progress: Callable[[int, int], None] = lambda rows, compactions: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> ReplayResult:
    """Feed the rows to a new manager, ask for a view before every assistant row, and check every view.

    Summaries are kept in memory, so that a replay finds none of an earlier one, unless `cache` says where else.

    Args:
        rows: messages as `read_session` gives them.
        progress: called after every row with the rows fed and the compactions made so far.
        clock, sleep: seconds, as the manager takes them.

    Raises:
        TemplateError: the prompt set of the settings is incomplete.
    """
    config = replace(setup.config, persistence=None)  # a replay does not write a session's history
    counter = await loaded_counter()
    counted = CountedProvider(setup.provider)
    result = await _blank(config, setup, counted)
    session = _Session({setup.name: counted}, message_numbers(rows))
    recorder = ViewRecorder(session.numbers, counter.count)
    audit = Audit(copy_json(list(rows)), result, counter.count)
    store = MemoryStore() if config.cache in (None, "memory") else None
    manager = SummarizingContextManager(session, config=config, store=store, clock=clock, sleep=sleep)
    manager.check_providers()
    started = clock()
    try:
        async for number in _played(rows, manager, setup.token_budget, counted, (session, audit, recorder)):
            progress(number, len(session.boundaries))
        result.seconds = clock() - started
        await _add_state(result, manager, audit)
    finally:
        await manager.close()
    _add_observed(result, counted, session, recorder)
    return result


async def _add_state(result: ReplayResult, manager: SummarizingContextManager, audit: Audit) -> None:
    """Write into the result what the manager holds at the end, and check its history."""
    audit.history(await manager.get_messages())
    result.snapshot = await manager.snapshot(result.last_view)
    statistics = await manager.statistics()
    result.failed_summaries, result.coverage = statistics.failed, statistics.coverage


def _add_observed(result: ReplayResult, provider: CountedProvider, session: _Session, recorder: ViewRecorder) -> None:
    """Write into the result what was seen from outside the manager: its events, its views and the provider's calls."""
    result.boundaries, result.views = session.boundaries, recorder.views()
    session.summaries.tell(result)
    result.provider_calls, result.failed_calls = provider.calls, provider.failed
    result.provider_input_tokens, result.provider_output_tokens = provider.input_tokens, provider.output_tokens


async def _played(
    rows: Sequence[JsonRow],
    manager: SummarizingContextManager,
    token_budget: int | None,
    provider: CountedProvider,
    watchers: tuple[_Session, Audit, ViewRecorder],
) -> AsyncIterator[int]:
    """The number of each row once it has been fed; a view is asked for, and checked, before every assistant row."""
    session, audit, recorder = watchers
    for number, row in enumerate(rows, 1):
        if row["role"] == "assistant":
            session.row, compactions = number, len(session.boundaries)
            recorder.before(manager.conversation)
            view = await manager.get_messages_for_request(token_budget, provider=provider)
            audit.view(number, view, made_compaction=bool(session.boundaries))
            recorder.after(manager.conversation, compacted=len(session.boundaries) > compactions)
            session.summaries.shown(manager.conversation.view)
            await manager.settle()  # no time passes between turns, so that a replay always gives the same views
        await manager.add_message(row)
        await asyncio.sleep(0)  # otherwise Ctrl-C waits for the next provider call
        yield number


async def _blank(config: Config, setup: Setup, provider: CountedProvider) -> ReplayResult:
    """The result before the first row."""
    window = await provider_window(provider) if setup.token_budget is None else None
    sizes = window or setup.window
    budget = await request_budget(config, setup.token_budget, provider)
    return ReplayResult(
        provider=setup.name,
        budget=budget,
        source=setup.source,
        notes=setup.notes,
        settings=changed_settings(config),
        redact=config.redact,
        threshold_tokens=int(config.compact_threshold * budget) if config.auto_compact else None,
        target_tokens=int(config.target_usage * budget),
        window=window.context if window else None,
        kept_free=sizes.output + config.safety_margin if sizes else 0,
    )


def changed_settings(config: Config) -> dict[str, Any]:
    """The settings that differ from the defaults. Addresses and paths are hidden: they may hold passwords or names."""
    default = Config()
    given = {item.name: getattr(config, item.name) for item in fields(config)}
    changed = {key: value for key, value in given.items() if value != getattr(default, key)}
    return {key: "…" if key in _PRIVATE and value != "memory" else value for key, value in changed.items()}


class _Session:
    """The part of a coordinator that the manager uses: the providers by name, and hooks that receive its events."""

    def __init__(self, providers: dict[str, Any], numbers: Sequence[int | None]) -> None:
        self._providers = providers
        self.numbers = numbers
        self._reason = ""
        self.row = 0
        self.boundaries: list[CompactionLine] = []
        self.summaries = MadeSummaries()

    @property
    def hooks(self) -> _Session:
        return self

    def get(self, mount_point: str) -> Any:
        return self._providers if mount_point == "providers" else None

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        if event == PRE_COMPACT:
            self._reason = data["reason"]
        elif event == SUMMARY:
            self.summaries.made(data)
        elif event == POST_COMPACT:
            self.boundaries.append(
                CompactionLine(
                    row=self.row,
                    before_tokens=data["tokens"] + data["tokens_saved"],
                    after_tokens=data["tokens"],
                    segments=data["segments"],
                    merged=data["merged"],
                    from_cache=data["from_cache"],
                    digests=data["digests"],
                    wait_ms=data["wait_ms"],
                    reason=self._reason,
                    message=self.numbers[self.row - 1],
                )
            )
