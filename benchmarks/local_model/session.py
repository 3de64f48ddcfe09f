"""A recorded session played with a real model as its provider, and what every call for a summary took and brought."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.local_model.server import LocalServer
from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.openai_compatible import make_provider
from context_summarize.stores.memory import MemoryStore

MAX_OUTPUT = 1_024
"""Tokens of the longest answer."""
CONFIG: Mapping[str, Any] = {
    "segment_tokens": 2_048,
    "max_concurrency": 1,
    "request_timeout": 240,
    "wait_seconds": 240,
}
"""On two idle cores the engine reads some 250 and writes some 100 tokens a second, on busy ones a tenth of that: few
summaries, one at a time, so that the session keeps the engine's other slot and its prompt cache."""
_SUMMARIZER = "context_summarize.summaries.summarizer"


@dataclass(frozen=True, slots=True)
class Call:
    """One answer of the model to a request for a summary."""

    seconds: float
    read: int
    """Tokens of its input."""
    cached: int
    """Tokens of those that the engine took from its prompt cache."""
    wrote: int
    finish: str
    """Why it ended; the error's class where there was no answer."""
    text: str
    began: float
    """Seconds since the start of the session."""


@dataclass(slots=True, kw_only=True)
class Played:
    """What one session saw."""

    rows: int = 0
    requests: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    """Seconds that requests waited for summaries."""
    calls: list[Call] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    """Answers that validation refused, by its word for why."""
    failures: dict[str, int] = field(default_factory=dict)
    """Summaries that could not be had, by the event's `kind`."""
    summaries: int = 0
    """Made by the model."""
    fallbacks: int = 0
    """Fallback summaries in the last view."""
    in_view: int = 0
    """Summaries in the last view, fallbacks among them."""
    view: list[JsonRow] = field(default_factory=list)
    """The last one."""

    def as_json(self) -> dict[str, Any]:
        """All figures and texts."""
        return asdict(self)


class _Watched:
    """The provider, with a note of every call."""

    def __init__(self, provider: Any, calls: list[Call]) -> None:
        self._provider, self._calls, self._started = provider, calls, time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        try:
            response = await self._provider.complete(request, **kwargs)
        except BaseException as error:  # a call that takes too long is cancelled
            self._note(began, finish=type(error).__name__)
            raise
        usage = response.usage
        self._note(
            began,
            finish=response.finish_reason or "",
            read=usage.input_tokens if usage else 0,
            cached=(usage.cache_read_tokens or 0) if usage else 0,
            wrote=usage.output_tokens if usage else 0,
            text="\n".join(block.text for block in response.content if block.type == "text"),
        )
        return response

    def _note(self, began: float, finish: str, read: int = 0, cached: int = 0, wrote: int = 0, text: str = "") -> None:
        seconds = time.monotonic() - began
        self._calls.append(Call(round(seconds, 1), read, cached, wrote, finish, text, round(began - self._started, 1)))


class _Refusals(logging.Handler):
    """Counts the answers that validation refuses, which the summariser tells its log."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.counted: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("summary refused") and isinstance(record.args, tuple):
            self.counted[str(record.args[1])] += 1


class _Events:
    """A host that counts this module's events."""

    def __init__(self) -> None:
        self.summaries = 0
        self.failures: Counter[str] = Counter()
        self.hooks = self

    def get(self, mount_point: str) -> dict[str, Any]:
        """Nothing is mounted: the provider comes with each request."""
        return {}

    async def emit(self, event: str, data: Mapping[str, Any]) -> None:
        """Count an event."""
        if event == "context-summarize:summary":
            self.summaries += 1
        elif event == "context-summarize:failure":
            self.failures[str(data["kind"])] += 1


async def play(
    server: LocalServer, rows: Sequence[JsonRow], *, budget: int, config: Mapping[str, Any] | None = None
) -> Played:
    """Play a session: before each assistant row a request is made, and the model is asked for nothing but summaries.

    Args:
        budget: tokens that one request may hold.
        config: settings beside `CONFIG`.
    """
    played, host, refusals = Played(rows=len(rows)), _Events(), _Refusals()
    provider = make_provider(server.base_url, server.model, context_window=server.window, max_output_tokens=MAX_OUTPUT)
    watched = _Watched(provider, played.calls)
    manager = SummarizingContextManager(host, config={**CONFIG, **(config or {})}, store=MemoryStore())
    log = logging.getLogger(_SUMMARIZER)
    before = log.level
    log.addHandler(refusals)
    log.setLevel(logging.INFO)
    started = time.monotonic()
    try:
        for row in rows:
            if row["role"] == "assistant":
                played.view = await manager.get_messages_for_request(budget, watched)
                played.requests += 1
            await manager.add_message(row)
        statistics = await manager.statistics()
    finally:
        log.removeHandler(refusals)
        log.setLevel(before)
        await manager.close()
        await provider.close()
    played.seconds, played.waited = time.monotonic() - started, statistics.waited_s
    played.in_view, played.fallbacks = statistics.summaries, statistics.digests
    played.refused, played.failures, played.summaries = dict(refusals.counted), dict(host.failures), host.summaries
    return played
