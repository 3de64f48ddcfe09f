"""`SummarizingContextManager`: the methods that hosts call, over the history, its file and the requests about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from context_summarize.background import in_thread
from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.core.history import History
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import rough_size
from context_summarize.messages.rows import JsonRow, copy_json
from context_summarize.recall import RecallAnswer, RecallQuery, limit_tokens
from context_summarize.session.compaction import Preview
from context_summarize.session.conversation import checked_rows, common_prefix, fill, named
from context_summarize.session.host_face import HostFace
from context_summarize.session.limits import RequestOptions
from context_summarize.stores import SummaryStore
from context_summarize.summaries.services import Statistics
from context_summarize.tokens.measure import measure

END_SECONDS = 5.0
"""How long the end of a session waits for the summaries that are under way."""
_MANY = 1_000
"""Rows above which an import into an empty history is taken in by a thread."""


class SummarizingContextManager(HostFace):
    """An Amplifier context manager that keeps the whole history and sends a view of it that fits the window.

    `SummarizingContextManager(max_tokens=40_000, keep_recent=10)` works without a host: it keeps the history, and the
    provider passed to `get_messages_for_request` writes the summaries; without one they are fallbacks made by code.

    Args:
        coordinator: the session's coordinator; None without a host.
        config: settings, checked or as a mapping; or pass them as keywords.
        store: where summaries are kept; by default what `cache` names, or memory if it names nothing. (`mount()`
            gives a file in the user's Amplifier folder.)
        clock, sleep: seconds, for retries and measured waiting; replaced in tests.

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
        **settings: Any,
    ) -> None:
        if config is not None and settings:
            raise TypeError("pass either config or settings, not both")
        checked = config if isinstance(config, Config) else Config.from_mapping(settings or config)
        super().__init__(coordinator, checked, store, clock, sleep)
        self._replacing = asyncio.Lock()
        """Calls that replace the history take turns: the last of them wins, however long an earlier one takes."""
        self._added = 0
        """Rows that were added one by one: those that come after a call that replaces the history stay."""

    # --- the contract -----------------------------------------------------------------------------------------------

    async def add_message(self, message: JsonRow) -> None:
        """Append one message to the history.

        Raises:
            ValueError: the row cannot be kept; nothing has changed.
        """
        raw = normalise(message)
        # The row is in place before anything is awaited, so that rows keep the order of the calls.
        if self._file is not None and not self._file.loaded:
            await self._file.append([raw])
            return
        self._take([raw])
        self._added += 1
        history, count = self.conversation.history, self._services.count
        index = len(history) - 1
        if self._file is not None:
            await self._file.append([raw])
        if not self._host.counter.loaded:
            await self._host.counter.load()
        history.tokens[index] = await in_thread(rough_size(raw), measure, raw, count)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any | None = None
    ) -> list[JsonRow]:
        """The rows for the next request, within the budget; see `decide` for when a compaction is made.

        Args:
            token_budget: tokens that the request may hold; None or 0: what the provider's window gives.
            provider: the provider that will be asked; it writes the summaries too unless `summary_provider` is set.

        Raises:
            TypeError, ValueError: `token_budget` is no whole number, or negative; nothing has changed.
        """
        return await self._served(RequestOptions(token_budget=token_budget, provider=provider))

    async def get_messages(self) -> list[JsonRow]:
        """Every message that was added, in order and unchanged, as copies."""
        await self._loaded()
        return self.messages

    @property
    def messages(self) -> list[JsonRow]:
        """The same as `get_messages()`: copies; changing them changes nothing here."""
        return [copy_json(row.raw) for row in self.conversation.history.rows]

    async def set_messages(self, messages: Iterable[JsonRow]) -> None:
        """Replace the history, as hosts do at resume and to repair a transcript.

        Summaries of an unchanged prefix are found again by their keys, and the last compaction by its record.

        Raises:
            ValueError: a row cannot be kept; nothing has changed.
        """
        await self._loaded()
        added = self._added
        async with self._replacing:
            await self._set_messages(messages, self._added - added)

    async def _set_messages(self, messages: Iterable[JsonRow], added: int) -> None:
        """Replace the history, but for so many rows at its end that were added since the host's call."""
        history = self.conversation.history
        known = len(history) - added
        rows = await checked_rows(messages)
        if self._file is not None:
            rows = await self._file.accepted([row.raw for row in history.rows[:known]], rows)
        same = common_prefix(history.rows[:known], rows)
        if same < known or (len(rows) > known < len(history)) or (not known and len(rows) > _MANY):
            await self._replace(history, rows, same, known)
        elif self.conversation.history is history:
            self._take(rows[same:])
            if self._file is not None:
                await self._file.append(rows[same:])

    async def _replace(self, history: History, rows: list[JsonRow], same: int, known: int) -> None:
        """Go on with these rows and those that came since the host's call."""
        steered = self.conversation.steered
        kept, pins = list(zip(history.rows[:same], history.tokens[:same], strict=True)), named(steered.pins, history)
        fresh = replace(self._new_conversation(), steered=steered)
        fresh = await in_thread(500 * len(rows), fill, fresh, kept, rows[same:], pins)
        if self.conversation.history is not history:
            return
        added = [row.raw for row in history.rows[known:]]
        self._requests.begin(fresh)
        self._take(added)
        if self._file is not None:
            await self._file.replace([*rows, *added])

    async def clear(self) -> None:
        """Forget the conversation. Summaries that are stored stay stored, under keys that nobody asks for."""
        await self._loaded()
        async with self._replacing:
            self._requests.begin(self._new_conversation())
            self._requests.forget()
            self._summarizer.forget_failures()
            if self._file is not None:
                await self._file.replace([])  # first: the host may cancel while the record is written
            await self._requests.records.write(self.conversation)  # no pins, nothing undone

    # --- what hosts look for ----------------------------------------------------------------------------------------

    async def get_token_count(self) -> int:
        """Tokens of the view as it would be served now, without a compaction; 0 while there is nothing."""
        await self._loaded()
        return await self._requests.tokens()

    async def should_compact(self) -> bool:
        """True if the next request would make a compaction; loops that compact by themselves ask it. Starts nothing."""
        await self._loaded()
        return await self._requests.is_due()

    async def compact(self, focus: str | None = None) -> int:
        """Make a compaction now, down to `keep_recent`, with the last request's provider and budget.

        Args:
            focus: what the summary of the newest summarised part should keep above all.

        Returns:
            Tokens saved: `get_token_count()` before minus after.

        Raises:
            TypeError: `focus` is no text.
        """
        if focus is not None and not isinstance(focus, str):
            raise TypeError(f"focus must be text that says what to keep, got {type(focus).__name__}")
        await self._loaded()
        return await self._requests.compact(focus)

    async def preview(self) -> Preview:
        """What `compact()` would do now, without making it or asking anybody."""
        await self._loaded()
        return await self._requests.preview()

    async def settle(self) -> None:
        """Until what is being prefetched is there, at most `wait_seconds`: replays leave no time between requests."""
        await self._requests.settled(self._config.wait_seconds)

    async def recall(self, query: RecallQuery) -> RecallAnswer:
        """Read summarised or shortened rows back, as the model asks for them, while there is room for an answer.

        Raises:
            RecallError: the query names nothing that is there, or there is no room for an answer.
        """
        used, chat, served = await self.get_token_count(), self.conversation, self._host.limits.served
        budget = served.budget if served else DEFAULT_BUDGET
        bound = self._requests.defer_below(served) if served and self._config.auto_compact else budget
        limit, nodes = limit_tokens(query, budget, bound - used - self._recall.reading), chat.view.nodes
        return await self._recall.answer(chat.history, nodes, chat.view.frontier, query, limit)

    async def statistics(self) -> Statistics:
        """What the summaries of this session have taken so far."""
        tokens, chat, served = await self.get_token_count(), self.conversation, self._host.limits.served
        shown = chat.view.shown
        return replace(
            self._services.totals,
            messages=len(chat.history),
            view_tokens=tokens,
            budget=served.budget if served else None,
            summaries=len(shown),
            fallbacks=sum(item.summary.fallback for item in shown),
        )

    async def finish(self) -> None:
        """The session ends: wait up to five seconds for summaries under way and store them, and end the others.

        Hosts clean their providers up before the context, so that calls that went on until `close()` would fail.
        """
        await self._requests.finish(END_SECONDS)

    async def close(self) -> None:
        """End what is under way and let go of the store."""
        await self._recall.close()
        await self._requests.close()
        if self._file is not None:
            await self._file.close()
        await self._services.store.close()
