"""A session played to one contestant with a real model behind it, and what every call took and brought."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from amplifier_core.llm_errors import ContextLengthError, LLMError
from amplifier_core.message_models import ChatRequest, Message

from benchmarks.local_model.calls import SESSION, SUMMARY, Call, Noted
from benchmarks.local_model.contestants import MAX_OUTPUT, OURS, OursWithModel, closed, make, terms_of
from benchmarks.local_model.server import LocalServer
from benchmarks.local_model.sessions import Kept, Row, Session, kept
from benchmarks.peers import Contestant, text_of
from context_summarize.providers.openai_compatible import make_provider
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

BUDGET = 5_000
"""Tokens that one request may hold, as `o200k_base` counts them; the small model's own tokens are up to half as many
again, and an answer needs room too."""
MARK_TOKENS = 5_000
"""After so many tokens of the session each, the next request's view is scored: contestants that are stopped at
different rows are compared at the last mark that all of them reached."""
_TOLD_EVERY = 30.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a request's view held in mid-session, and what it had taken until then."""

    rows: int
    """Rows that were played before the request."""
    tokens: int
    """Of these rows."""
    seconds: float
    """Since the start of the session, until the view was there."""
    waited: float
    """Seconds of those until the rows of requests were there."""
    view_tokens: int
    values: int
    """Values that were asked for in questions about these rows."""
    in_view: int
    near: int


@dataclass(slots=True, kw_only=True)
class Played:
    """What one contestant did in one session."""

    contestant: str
    title: str = ""
    settings: str = ""
    session: str = ""
    rows: int = 0
    """Of the session."""
    played: int = 0
    """Rows of those that were played before the time was over."""
    tokens: int = 0
    """Of the rows that were played."""
    stopped: str = ""
    """Why it ended early; empty if it did not."""
    requests: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    """Seconds until the rows of a request were there, over all requests."""
    waited_worst: float = 0.0
    calls: list[Call] = field(default_factory=list)
    refused_requests: int = 0
    """Requests of the session that the engine refused, mostly as too long."""
    view_tokens: float = 0.0
    """Of a request on average."""
    values: int = 0
    """Values that were asked for in questions about the rows before the last view."""
    in_view: int = 0
    near: int = 0
    marks: tuple[Mark, ...] = ()
    """In the order of the session; the last one is its end, if that was reached."""
    told: dict[str, Any] = field(default_factory=dict)
    """What only this module tells: `summaries` made, answers `refused` by validation, `failures`, summaries `in_view`
    of the last request, and `fallbacks` among them."""
    view: list[Row] = field(default_factory=list)
    """The last one."""

    def of(self, purpose: str) -> list[Call]:
        """The calls of one purpose."""
        return [call for call in self.calls if call.purpose == purpose]

    def as_json(self) -> dict[str, Any]:
        """All figures and texts."""
        return asdict(self)


def played_of(told: Mapping[str, Any]) -> Played:
    """A `Played` out of its JSON."""
    calls, marks = [Call(**call) for call in told["calls"]], tuple(Mark(**mark) for mark in told.get("marks", ()))
    return Played(**{**told, "calls": calls, "marks": marks})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a session is played."""

    budget: int = BUDGET
    minutes: float = 20.0
    """The longest that one contestant may take."""
    max_output: int = MAX_OUTPUT
    """Tokens of the longest answer that this module may ask for."""
    asks: bool = True
    """All of the session's own requests go to the model too, so that its prompt cache is measured; it writes one token.
    Without, only the last one does."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Settings of this module beside those of `contestants.CONFIG`."""


class _Play:
    def __init__(self, name: str, session: Session, server: LocalServer, terms: Terms, count: Callable[[str], int]):
        self._session, self._terms = session, terms
        self._count = functools.lru_cache(maxsize=50_000)(count)
        self._sizes = [measure(row, self._count) for row in session.rows]
        self.played = Played(contestant=name, session=session.name, rows=len(session.rows))
        self._started = time.monotonic()
        self.provider = make_provider(
            server.base_url, server.model, context_window=server.window, max_output_tokens=terms.max_output
        )
        self._asked = Noted(self.provider, self.played.calls, SESSION, self._started)
        summarises = Noted(self.provider, self.played.calls, SUMMARY, self._started)
        mean = sum(self._sizes) / max(1, len(self._sizes))
        made = make(name, terms_of(summarises, self._count, terms.budget, mean, terms.config))
        self.contestant: OursWithModel | Contestant = made
        self.played.title, self.played.settings = made.title, made.settings
        self._told = self._started
        self._viewed = 0
        self._next_mark = MARK_TOKENS

    async def run(self) -> None:
        """Play until the rows or the minutes are over."""
        try:
            async with asyncio.timeout(self._terms.minutes * 60):
                for row in self._session.rows:
                    if row["role"] == "assistant":
                        await self._request(asks=self._terms.asks)
                    await self.contestant.add(dict(row))
                    self.played.tokens += self._sizes[self.played.played]
                    self.played.played += 1
                    self._progress()
                self._next_mark = 0
                await self._request(asks=True)
        except TimeoutError:
            self.played.stopped = f"time was over ({self._terms.minutes:g} minutes)"
        except Exception as error:  # noqa: BLE001 (a peer may raise anything into its host: the session ends there)
            self.played.stopped = f"{type(error).__name__}: {error}"[:300]
        self._finish()

    async def _request(self, *, asks: bool) -> None:
        played, began = self.played, time.monotonic()
        played.view = await self.contestant.view()
        waited = time.monotonic() - began
        played.waited += waited
        played.waited_worst = max(played.waited_worst, waited)
        size = sum(measure(row, self._count) for row in played.view)
        played.view_tokens = (played.view_tokens * played.requests + size) / (played.requests + 1)
        played.requests += 1
        self._viewed = played.played
        if played.tokens >= self._next_mark:
            self._mark(size)
        if asks:
            try:
                await self._asked.complete(
                    ChatRequest(messages=[Message(**row) for row in played.view], max_output_tokens=1)
                )
            except (ContextLengthError, LLMError):
                played.refused_requests += 1

    def _mark(self, view_tokens: int) -> None:
        played, found = self.played, self._kept()
        mark = Mark(
            rows=played.played,
            tokens=played.tokens,
            seconds=round(time.monotonic() - self._started, 1),
            waited=round(played.waited, 1),
            view_tokens=view_tokens,
            values=found.values,
            in_view=found.in_view,
            near=found.near,
        )
        played.marks = (*played.marks, mark)
        self._next_mark = (played.tokens // MARK_TOKENS + 1) * MARK_TOKENS

    def _kept(self) -> Kept:
        """What the last view holds of the questions about the rows that it was made of."""
        return kept("\n".join(map(_shown, self.played.view)), self._session.first(self._viewed).questions)

    def _finish(self) -> None:
        played, found = self.played, self._kept()
        played.seconds = time.monotonic() - self._started
        played.values, played.in_view, played.near = found.values, found.in_view, found.near

    def _progress(self) -> None:
        now, played = time.monotonic(), self.played
        if now - self._told < _TOLD_EVERY:
            return
        self._told = now
        print(
            f"  {played.contestant}: {played.played} of {played.rows} rows, {now - self._started:.0f} s, "
            f"{len(played.of(SUMMARY))} calls for summaries",
            file=sys.stderr,
            flush=True,
        )


async def play(name: str, session: Session, server: LocalServer, terms: Terms | None = None) -> Played:
    """Play a session to one contestant: before each assistant row, and at the end, a request is made.

    Raises:
        ImportError: the peer is not installed.
        KeyError: there is no contestant of that name.
    """
    counter = TokenCounter()
    await counter.load()
    run = _Play(name, session, server, terms or Terms(), counter.count)
    try:
        await run.run()
        if name == OURS and isinstance(run.contestant, OursWithModel):
            run.played.told = await run.contestant.told()
    finally:
        await closed(run.contestant)
        await run.provider.close()
    return run.played


def _shown(row: Row) -> str:
    """The text of a row with its calls' arguments."""
    calls = " ".join(str(call.get("arguments", "")) for call in row.get("tool_calls") or [])
    return f"{text_of(row)}\n{calls}"
