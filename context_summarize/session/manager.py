"""`SummarizingContextManager`: the methods that hosts call, over the history, its file and the requests about it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from amplifier_core.models import HookResult

from context_summarize.background import GRACE, within
from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.events import LOOP_ERROR, OBSERVED, Outbox
from context_summarize.host_types import Coordinator, Provider
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.recall import RecallAnswer, RecallQuery, RecallService, limit_tokens
from context_summarize.redaction import build_redactor
from context_summarize.session.host import Host, is_child
from context_summarize.session.request_limits import RequestOptions, retained_texts
from context_summarize.session.state import Session
from context_summarize.session.steering import Steering
from context_summarize.session.telling import Telling
from context_summarize.stores import SummaryStore, session_store
from context_summarize.summaries.call import Summarizer, own_call
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services, Statistics
from context_summarize.tokens.measure import input_tokens

_FOR_FINISH, _FOR_CLOSE = 3.0, 2.0
"""Seconds that the two parts of a session's end take at most."""


class SummarizingContextManager(Steering):
    """An Amplifier context manager that keeps the whole history and sends a view of it that fits the window.

    `SummarizingContextManager(max_tokens=40_000, keep_recent=10)` works without a host: the provider passed to
    `get_messages_for_request` writes the summaries. If none is passed, code writes fallbacks.

    Args:
        coordinator: the session's coordinator; None without a host.
        config: settings, checked or as a mapping; or pass them as keywords.
        store: keeps the summaries; by default the one that `cache` names, else memory. (`mount()` passes a file in
            the user's Amplifier folder.)
        clock, sleep: functions that tell the time and wait, in seconds; tests replace them.
        now: returns the seconds since 1970, for the time of rows; tests replace it.

    Raises:
        ConfigError: a setting is wrong.
        TemplateError: the prompt set is incomplete.
    """

    def __init__(
        self,
        coordinator: Coordinator | None = None,
        *,
        config: Config | Mapping[str, Any] | None = None,
        store: SummaryStore | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        if config is not None and settings:
            raise TypeError("pass either config or settings, not both")
        checked = config if isinstance(config, Config) else Config.from_mapping(settings or config)
        tells_user = checked.announce and not is_child(coordinator)
        outbox = Outbox(coordinator, checked.redact, tells_user=tells_user)
        redact = build_redactor(checked.redact)
        self._host = host = Host(coordinator, checked, redact, partial(outbox.notify, level="error"))
        self._services = services = Services(
            config=checked,
            prompts=load_prompts(checked.prompts),
            store=session_store(checked.cache, store),
            outbox=outbox,
            totals=Statistics(),
            redact=redact,
            count=host.counter.count,
            clock=clock,
            sleep=sleep,
        )
        self._summarizer = Summarizer(services)
        texts = SummaryRegistry(services, self._summarizer, host.is_cancelled)
        session = Session(services, host, texts)
        super().__init__(session, Telling(outbox), now)
        self._recall = RecallService(host.counter.count)

    @property
    def session(self) -> Session:
        """The state of the session, for reading only."""
        return self._session

    async def add_message(self, message: JsonRow) -> None:
        """Appends one message to the history; it gets the time in `metadata.timestamp` if it has none.

        Raises:
            ValueError: the row cannot be kept; nothing has changed.
        """
        await self._incoming.add(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[JsonRow]:
        """Returns the rows for the next request, within the budget; see `decide` for when a compaction is made.

        Args:
            token_budget: tokens that the request may hold; None or 0: what the provider's window gives.
            provider: the provider of the request; it also writes the summaries, unless the settings name another.

        Raises:
            TypeError, ValueError: `token_budget` is no whole number, or negative; or the provider has no `complete()`.
        """
        return await self._rows(RequestOptions(token_budget=token_budget, provider=provider))

    async def request_retention(
        self,
        *,
        retain_contents: Iterable[str],
        provider: Provider | None = None,
        token_budget: int | None = None,
        hard_fit: bool = False,
    ) -> list[JsonRow]:
        """Returns the rows for the next request, with reminders that the host needs whole.

        Hosts find it as the capability `context.request_retention`.

        Args:
            retain_contents: contents of user rows marked ephemeral and persisted. If a compaction has summarised one,
                the request shows it whole right after the summaries. One text, or no collection, raises TypeError.
            provider, token_budget: as in `get_messages_for_request`.
            hard_fit: True if the provider has refused the last request as too large; this one is smaller.
        """
        retained = retained_texts(retain_contents)
        return await self._rows(
            RequestOptions(token_budget=token_budget, provider=provider, retained=retained, hard_fit=hard_fit)
        )

    async def _rows(self, wanted: RequestOptions) -> list[JsonRow]:
        await self._incoming.ready()
        rows = await self._requests.rows(wanted)
        if (file := self._incoming.file) is not None:
            await file.do(file.sync)  # every row of the view, also one that came while summaries were made
        return rows

    async def get_messages(self) -> list[JsonRow]:
        """Returns every message that was added, in order and unchanged but for its time, as copies."""
        await self._incoming.ready()
        return self.messages

    @property
    def messages(self) -> list[JsonRow]:
        """The messages as `get_messages()` returns them, also as copies."""
        return [copy_json(row.raw) for row in self._session.log.rows]

    async def set_messages(self, messages: Iterable[JsonRow]) -> None:
        """Replaces the history. Hosts call it to resume a session and to repair a transcript.

        Raises:
            ValueError: a row cannot be kept; nothing has changed.
        """
        await self._incoming.set(messages)

    restore_host_checkpoint = set_messages
    """Newer hosts call it with a history that they saved and trust. Instructions of the host in it
    (`metadata["amplifier:instruction"]`) are kept and never summarised."""

    async def clear(self) -> None:
        """Forgets the conversation. The store keeps its summaries; equal messages would find them again."""
        await self._incoming.clear()

    async def get_token_count(self) -> int:
        """Returns the tokens of the request as it would be sent now; 0 without messages and system prompt."""
        await self._incoming.ready()
        return await self._session.tokens()

    async def should_compact(self) -> bool:
        """Returns True if the next request would make a compaction, for loops that call `compact()`. Starts nothing."""
        return await self._due_reason() is not None

    async def settle(self) -> None:
        """Waits at most `wait_seconds` for summaries under way. Replays call it: their requests follow at once."""
        await self._session.texts.idle(self._services.config.wait_seconds)

    async def recall(self, query: RecallQuery) -> RecallAnswer:
        """Returns summarised or shortened rows that match the query, as far as there is room for an answer.

        Raises:
            TypeError: `query` is no `RecallQuery`.
            RecallError: nothing matches the query, or there is no room for an answer.
        """
        used, session, served = await self.get_token_count(), self._session, self._host.served
        budget = bound = served.budget if served else DEFAULT_BUDGET
        if served and self._services.config.auto_compact:
            left = session.view().left
            bound = served.used(served.own.defer_below(left))
        limit = limit_tokens(query, budget, bound - used - self._recall.reading)
        return await self._recall.answer(session.log, session.cut.groups, query, limit)

    @property
    def _system_prompt_factory(self) -> Callable[[], Awaitable[str]] | None:
        """The factory of the system prompt. Hooks read it under this name, wrap it, and set it again."""
        return self._host.system.factory

    @_system_prompt_factory.setter
    def _system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        self._host.system.set_factory(factory)

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        """Sets the factory of the system prompt; each request calls it anew. Its prompt hides stored system rows.

        System rows of hooks stay. Reminder blocks of the prompt move to the end of the request. A factory that cannot
        be called raises TypeError.
        """
        self._host.system.set_factory(factory)

    async def observe_response(self, event: str, data: dict[str, Any]) -> HookResult:
        """Takes in an `llm:response` or `provider:error`: usage corrects our measuring, refusals bound the budget."""
        if event in OBSERVED and isinstance(data, dict) and not own_call.get():
            self._observe(data, by_loop=event == LOOP_ERROR)
        return HookResult(action="continue")

    async def observe_usage(self, usage: object) -> None:
        """Takes in the usage of the answer to the last request, for a loop without hooks: it corrects our measuring.

        Args:
            usage: `response.usage` of OpenAI's or Anthropic's SDK, a mapping with the same names, or None.
        """
        self._observe({"usage": {"input_tokens": input_tokens(usage)}}, by_loop=False)

    def _observe(self, response: Mapping[str, Any], *, by_loop: bool) -> None:
        """Takes in the event of a call that is not ours. Those of another provider say nothing about the view."""
        name = response.get("provider")
        is_good = not by_loop and response.get("status", "ok") == "ok"
        if is_good and isinstance(name, str):
            self._summarizer.answered_elsewhere(name, response.get("model"))
        if isinstance(name, str) and self._host.is_another(name):
            return
        self._host.refusals.observe(response, by_loop=by_loop)
        if is_good and isinstance(usage := response.get("usage"), dict):
            self._host.meter.observe(usage)

    def claim_foreground_usage(self) -> Callable[..., bool]:
        """Returns the function by which a loop says which response was for the view: see `Meter.claim`."""
        return self._host.meter.claim()

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._requests.announced.is_open

    async def prepare(self) -> None:
        """Once all modules are mounted, mounts `recall` where it is wanted, and checks the summariser's settings."""
        await self._host.mount_recall()
        self._session.look_for_recall()
        self._host.check_summariser()
        await self._services.outbox.flush()

    async def finish(self) -> None:
        """Waits some seconds for summaries under way, stores them, and ends the others, while providers still work."""

        async def end() -> None:
            await self._session.texts.close(_FOR_FINISH - 2 * GRACE)
            await self._services.outbox.flush()

        await _ended(end, _FOR_FINISH)

    async def close(self) -> None:
        """Ends all work and closes the store."""
        session = self._session
        parts = (session.texts, self._services.outbox, session, self._recall, self._incoming, self._host.windows)

        async def end() -> None:
            await asyncio.gather(*(part.close() for part in parts))

        await _ended(end, _FOR_CLOSE)


async def _ended(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Runs `work` for at most so long; then abandons it."""
    with contextlib.suppress(TimeoutError):
        await within(work, seconds - GRACE)
