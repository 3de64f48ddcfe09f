"""`SummarizingContextManager`: the methods that hosts call, over the history, its file and the requests about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from amplifier_core.models import HookResult

from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.events import HEARD, LOOP_ERROR
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.recall import RecallAnswer, RecallQuery, RecallService, limit_tokens
from context_summarize.session.conversation import Conversation
from context_summarize.session.current import Current
from context_summarize.session.incoming import Incoming
from context_summarize.session.request import Requests
from context_summarize.session.request_limits import RequestOptions, retained_texts
from context_summarize.session.steering import Preview, Steering
from context_summarize.stores import SummaryStore, session_store
from context_summarize.summaries.call import own_call
from context_summarize.summaries.services import Statistics


class SummarizingContextManager:
    """An Amplifier context manager that keeps the whole history and sends a view of it that fits the window.

    `SummarizingContextManager(max_tokens=40_000, keep_recent=10)` works without a host: it keeps the history, and the
    provider passed to `get_messages_for_request` writes the summaries; without one they are fallbacks made by code.

    Args:
        coordinator: the session's coordinator; None without a host.
        config: settings, checked or as a mapping; or pass them as keywords.
        store: where summaries are kept; by default what `cache` names, or memory if it names nothing. (`mount()`
            gives a file in the user's Amplifier folder.)
        clock, sleep: seconds, for retries and measured waiting; replaced in tests.
        now: seconds since 1970, for the time of rows; replaced in tests.

    Raises:
        ConfigError: a setting is wrong.
        TemplateError: the prompt set is incomplete.
    """

    def __init__(
        self,
        coordinator: Any | None = None,
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
        self._current = current = Current(coordinator, checked, session_store(checked.cache, store), clock, sleep)
        self._config, self._host = checked, current.host
        self._requests = Requests(current)
        self._steering = Steering(current, self._requests)
        self._incoming = Incoming(current, coordinator, now)
        self._recall = RecallService(current.host.counter.count)

    @property
    def conversation(self) -> Conversation:
        """History, segments and view as they are now: a frozen value, to be read and not to be changed."""
        return self._current.chat

    async def add_message(self, message: JsonRow) -> None:
        """Appends one message to the history; it gets the time in `metadata.timestamp` if it has none.

        Raises:
            ValueError: the row cannot be kept; nothing has changed.
        """
        await self._incoming.add(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any | None = None
    ) -> list[JsonRow]:
        """Returns the rows for the next request, within the budget; see `decide` for when a compaction is made.

        Args:
            token_budget: tokens that the request may hold; None or 0: what the provider's window gives.
            provider: the provider that will be asked; it writes the summaries too unless `summary_provider` is set.

        Raises:
            TypeError, ValueError: `token_budget` is no whole number, or negative; nothing has changed.
        """
        return await self._rows(RequestOptions(token_budget=token_budget, provider=provider))

    async def request_retention(
        self,
        *,
        retain_contents: Iterable[str],
        provider: Any | None = None,
        token_budget: int | None = None,
        hard_fit: bool = False,
    ) -> list[JsonRow]:
        """Returns the rows for the next request, with reminders that the host cannot do without.

        Hosts find it as the capability `context.request_retention`.

        Args:
            retain_contents: contents of user rows marked ephemeral and persisted. What a compaction has summarised
                stands whole behind the summaries. A TypeError says what else was given.
            provider, token_budget: as in `get_messages_for_request`.
            hard_fit: the provider finds the rows that were served last too large; they become fewer.
        """
        retained = retained_texts(retain_contents)
        return await self._rows(
            RequestOptions(token_budget=token_budget, provider=provider, retained=retained, hard_fit=hard_fit)
        )

    async def _rows(self, wanted: RequestOptions) -> list[JsonRow]:
        await self._incoming.ready()
        rows = await self._requests.rows(wanted)
        if (file := self._incoming.file) is not None:
            await file.sync()  # every row of the view, also one that came while summaries were made
        if (log := self._current.chat.log).recall:
            self._recall.follow(log)
        return rows

    async def get_messages(self) -> list[JsonRow]:
        """Returns every message that was added, in order and unchanged but for its time, as copies."""
        await self._incoming.ready()
        return self.messages

    @property
    def messages(self) -> list[JsonRow]:
        """The same as `get_messages()`: copies; changing them changes nothing here."""
        return [copy_json(row.raw) for row in self.conversation.log.rows]

    async def set_messages(self, messages: Iterable[JsonRow]) -> None:
        """Replaces the history, as hosts do at resume and to repair a transcript.

        Summaries of an unchanged prefix are found again by their keys, and the last compaction by its record.

        Raises:
            ValueError: a row cannot be kept; nothing has changed.
        """
        await self._incoming.set(messages)

    async def restore_host_checkpoint(self, messages: Iterable[JsonRow]) -> None:
        """The same as `set_messages`: newer hosts call it with a history that they have saved and trust.

        Such a history may hold instructions of the host (`metadata["amplifier:instruction"]`), which are kept, and are
        nobody's words to summarise.

        Raises:
            ValueError: a row cannot be kept; nothing has changed.
        """
        await self.set_messages(messages)

    async def clear(self) -> None:
        """Forgets the conversation. Summaries that are stored stay stored, under keys that nobody asks for."""
        await self._incoming.clear()

    async def get_token_count(self) -> int:
        """Returns the tokens of the view as it would be served now, without a compaction; 0 while there is nothing."""
        await self._incoming.ready()
        return await self._current.tokens()

    async def should_compact(self) -> bool:
        """True if the next request would make a compaction; loops that compact by themselves ask it. Starts nothing."""
        await self._incoming.ready()
        return await self._steering.due_reason() is not None

    async def compact(self, focus: str | None = None) -> int:
        """Makes a compaction now, down to `keep_recent`, with the last request's provider and budget.

        Args:
            focus: what the summary of the newest summarised part should keep above all.

        Returns:
            Tokens saved: `get_token_count()` before minus after.

        Raises:
            TypeError: `focus` is no text.
        """
        if focus is not None and not isinstance(focus, str):
            raise TypeError(f"focus must be text that says what to keep, got {type(focus).__name__}")
        await self._incoming.ready()
        return await self._requests.compact(focus)

    async def preview(self) -> Preview:
        """Returns what `compact()` would do now, without making it or asking anybody."""
        await self._incoming.ready()
        return await self._steering.preview()

    async def undo(self) -> int:
        """Takes the last compaction back without a call; the tokens that the request grows by.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit; nothing has changed.
        """
        await self._incoming.ready()
        return await self._steering.undo()

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keeps messages verbatim from the next compaction on; the numbers of all pinned ones. See `Steering.pin`."""
        await self._incoming.ready()
        return await self._steering.pin(messages)

    async def unpin(self, messages: int | Iterable[int] | None = None) -> tuple[int, ...]:
        """Lets go of these pins, or of all; the numbers of those left. See `Steering.unpin`."""
        await self._incoming.ready()
        return await self._steering.unpin(messages)

    async def settle(self) -> None:
        """Until what is being prefetched is there, at most `wait_seconds`: replays leave no time between requests."""
        await self._current.prefetch.settled(self._config.wait_seconds)

    async def recall(self, query: RecallQuery) -> RecallAnswer:
        """Reads summarised or shortened rows back, as the model asks for them, while there is room for an answer.

        Raises:
            TypeError: `query` is no `RecallQuery`.
            RecallError: the query names nothing that is there, or there is no room for an answer.
        """
        used, chat, served = await self.get_token_count(), self.conversation, self._host.served
        budget = served.budget if served else DEFAULT_BUDGET
        bound = (
            served.used(served.own.defer_below(chat.left(chat.rendering())))
            if served and self._config.auto_compact
            else budget
        )
        limit = limit_tokens(query, budget, bound - used - self._recall.reading)
        return await self._recall.answer(chat.log, chat.view.frontier, query, limit)

    async def statistics(self) -> Statistics:
        """Returns calls, tokens, dollars and seconds that the summaries of this session have taken so far."""
        tokens, chat, served = await self.get_token_count(), self.conversation, self._host.served
        shown = chat.view.shown
        return replace(
            self._current.services.totals,
            messages=len(chat.log),
            view_tokens=tokens,
            budget=served.budget if served and self._current.services.totals.requests else None,
            summaries=len(shown),
            fallbacks=sum(item.summary.fallback for item in shown),
        )

    @property
    def _system_prompt_factory(self) -> Callable[[], Awaitable[str]] | None:
        """Who is asked for the system prompt. Hooks read it under this name, wrap it, and set it again."""
        return self._host.system.factory

    @_system_prompt_factory.setter
    def _system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        self._host.system.set_factory(factory)

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        """Asks `factory` for the system prompt, once per view; stored system rows are hidden then, hook rows aside.

        Reminder blocks in the prompt end the request instead. What cannot be called is a TypeError.
        """
        self._host.system.set_factory(factory)

    async def observe_response(self, event: str, data: dict[str, Any]) -> HookResult:
        """Hear an `llm:response` or `provider:error`: figures correct our measuring, refusals make requests smaller."""
        if event in HEARD and isinstance(data, dict) and not own_call.get():
            self._current.heard(data, by_loop=event == LOOP_ERROR)
        return HookResult(action="continue")

    def claim_foreground_usage(self) -> Callable[..., bool]:
        """For loops that know which response was for the view: see `Meter.claim`."""
        return self._host.meter.claim()

    @property
    def is_compacting(self) -> bool:
        """True while a compaction is being made."""
        return self._requests.is_compacting

    async def stop_waiting(self) -> None:
        """The host has cancelled: a request that waits for summaries is answered now, the work goes on."""
        self._current.tasks.end_waits()

    async def prepare(self) -> None:
        """All modules are mounted: say where `summary_provider` is none of them, and look for the tool `recall`."""
        self._host.mounts.check()
        if not len(self.conversation.log):
            self._current.begin(self._current.fresh())

    async def finish(self) -> None:
        """The session ends: wait some seconds for summaries under way and store them, and end the others.

        With `close()` it takes at most five seconds. Hosts clean their providers up before the context, so that calls
        that went on until then would fail.
        """
        await self._current.finish()

    async def close(self) -> None:
        """Ends what is under way and lets go of the store."""
        file = self._incoming.file
        await self._current.close(self._recall.close, *([file.close] if file else []))
