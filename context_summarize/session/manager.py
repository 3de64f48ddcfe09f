"""`SummarizingContextManager`: the host's methods. Holds history and view state, and runs plan, texts and view."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import next_index, regular_frontier
from context_summarize.core.plan import Reason
from context_summarize.core.segments import derive_segment_tokens, derive_summary_tokens
from context_summarize.core.view import View
from context_summarize.core.view_state import ViewState
from context_summarize.errors import MessageError
from context_summarize.events import MESSAGE_ADDED, OVER_BUDGET, Outbox
from context_summarize.messages.checking import normalise
from context_summarize.messages.copying import copy_json
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.persistence.session_file import SessionFile, session_path
from context_summarize.recall.query import RecallAnswer, RecallQuery, limit_tokens
from context_summarize.recall.reader import RecallReader
from context_summarize.redaction.redactor import Redact, build_redactor
from context_summarize.session.compaction import Compactor, Prefetched, Preview
from context_summarize.session.host import DEFAULT_BUDGET, Providers, provider_window, request_budget
from context_summarize.session.limits import CompactionThrottle, Request
from context_summarize.session.prefetch import Prefetch
from context_summarize.session.resume import Records
from context_summarize.session.snapshot import Snapshot, take_snapshot
from context_summarize.session.statistics import Statistics
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.stores.layered import LayeredStore
from context_summarize.stores.memory import MemoryStore
from context_summarize.stores.open import open_store
from context_summarize.stores.protocol import SummaryStore
from context_summarize.summaries.job import Target
from context_summarize.summaries.pending import Pending
from context_summarize.summaries.prompts import PromptSet, load_prompts
from context_summarize.summaries.single_flight import SingleFlight
from context_summarize.summaries.summarizer import Summarizer, own_call
from context_summarize.summaries.texts import Texts
from context_summarize.summaries.usage import Totals
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

logger = logging.getLogger(__name__)

_MANY = 200
"""Rows above which counting goes to a thread."""
_LARGE = 50_000
"""Characters above which one row is counted in a thread."""
_PATIENCE = 0.5
"""Share of the room above `compact_threshold` that a session may use while texts begun ahead are still being made."""


class SummarizingContextManager:
    """An Amplifier context manager that keeps the whole history and sends a view of it that fits the window.

    `SummarizingContextManager(max_tokens=40_000, keep_recent=10)` works without a host: then the history is kept, and
    summaries are written by the provider passed to `get_messages_for_request`, or are digests where there is none.

    Args:
        coordinator: the session's coordinator; None without a host.
        config: settings, checked or as a mapping; or pass them as keywords.
        store: where summaries are kept; by default what `cache` names, or memory where it names nothing. (`mount()`
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
        self._config = config if isinstance(config, Config) else Config.from_mapping(settings or config)
        self._prompts: PromptSet = load_prompts(self._config.prompts)
        self._counter = TokenCounter()
        self._count = self._counter.count
        self._meter = Meter()
        self._clock = clock
        self._outbox = Outbox(getattr(coordinator, "hooks", None))
        self._providers = Providers(coordinator, self._config)
        self._cancellation = getattr(coordinator, "cancellation", None)
        if store is None:
            store = MemoryStore() if self._config.cache is None else open_store(self._config.cache)
        self._store: SummaryStore = store
        self._totals = Totals()
        self._flight = SingleFlight()
        self._pending = Pending()
        self._records = Records(self._store, self._prompts, self._config)
        self._throttle = CompactionThrottle()
        self._summarizer = Summarizer(
            self._config, self._prompts, self._count, clock=clock, sleep=sleep, totals=self._totals
        )
        self._texts = Texts(
            self._config,
            self._store,
            self._flight,
            self._summarizer,
            self._outbox,
            self._count,
            clock,
            self._totals,
        )
        self._redact: Redact | None = build_redactor(self._config.redact)
        self._lock = asyncio.Lock()
        self._system = SystemPrompt(self._count)
        self._last_budget: int | None = None
        """As the host gave it."""
        self._served_budget: int | None = None
        """In tokens."""
        self._warned_over_budget = False
        self._paused = False
        self._recalling = 0
        """Tokens of answers to `recall` that are being read."""
        self._start(self._new_history())
        path = self._config.persistence and session_path(str(self._config.persistence["path"]), coordinator)
        self._file = SessionFile(path, self._take) if path else None

    def _new_history(self) -> History:
        return History(recall=self._config.recall_tool)

    def _start(self, history: History) -> None:
        """Begin anew with this history; nothing of the old one's view is kept."""
        self._history = history
        self._state = ViewState()
        self._view: View | None = None
        self._adopted = False
        self._weighed: tuple[object, ...] | None = None
        self._served: tuple[object, ...] | None = None
        self._builder = NodeBuilder(history, self._prompts.segment.hash, self._prompts.merge.hash, self._redact)
        self._boundary = Compactor(
            history=history,
            builder=self._builder,
            texts=self._texts,
            pending=self._pending,
            floor=self._throttle,
            outbox=self._outbox,
            frame=self._prompts.frame.fill,
            config=self._config,
            count=self._count,
            clock=self._clock,
            totals=self._totals,
        )
        self._prefetch = Prefetch(self._boundary, self._pending, self._outbox)

    def _end_history(self) -> None:
        """Let go of what belongs to the history that is being replaced; calls under way still fill the store."""
        self._prefetch.stop()
        self._boundary.abandon()
        self._pending.forget_done()

    # --- the contract -----------------------------------------------------------------------------------------------

    async def add_message(self, message: JsonRow) -> None:
        """Append one message to the history.

        Raises:
            ValueError: the row cannot be kept; nothing has changed.
        """
        raw = normalise(message)
        # The row is in place before anything is awaited, so that rows keep the order of the calls.
        index: int | None = None
        if self._file is not None and not self._file.loaded:
            await self._file.place_early(raw)
        else:
            self._take([raw])
            index = len(self._history) - 1
        history = self._history
        if self._file is not None and index is not None:
            await self._file.append([raw])
        if not self._counter.loaded:
            await self._counter.load()
        if index is not None and sum(len(text) for text in _texts_of(raw)) > _LARGE:
            await asyncio.to_thread(history.count_rows, index, index + 1, self._count)
        elif index is not None:
            history.count_rows(index, index + 1, self._count)
        if self._config.debug:
            data = {"role": raw["role"], "tokens": measure(raw, self._count), "message_count": len(history)}
            self._outbox.put(MESSAGE_ADDED, data)
            await self._outbox.flush()

    def _take(self, rows: Iterable[JsonRow]) -> None:
        """Append normalised rows to the history."""
        for raw in rows:
            self._history.add(analyse(raw, preserve_system=self._config.preserve_system))

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any | None = None
    ) -> list[JsonRow]:
        """The rows for the next request, within the budget; see `Plan` for what is folded and why.

        Args:
            token_budget: tokens that the request may hold; by default what the provider's window gives.
            provider: the provider that will be asked; it writes the summaries too unless `summary_provider` is set.
        """
        await self._loaded()
        async with self._lock:
            while True:
                history = self._history
                request = await self._request(history, token_budget, provider)
                await self._adopt(history)
                if history is not self._history:
                    continue  # replaced while something was waited for: begin anew
                self._derive_sizes(history, request.budget)
                reason = self._reason(request)
                if reason is not None:
                    await self._cross(history, request, reason)
                else:
                    self._weighed = self._weight(request)
                if history is self._history:
                    break
            rows = self._serve(request)
            self._prefetch_next(request)
            if self._file is not None:
                await self._file.sync()  # every row of the view, also one that came while summaries were made
            await self._outbox.flush()
            return rows

    async def get_messages(self) -> list[JsonRow]:
        """Every message that was added, in order and unchanged, as copies."""
        await self._loaded()
        return self.messages

    async def _loaded(self) -> None:
        """Until the history's file has been read, if there is one."""
        if self._file is not None:
            await self._file.ready()

    @property
    def messages(self) -> list[JsonRow]:
        """The same as `get_messages()`: copies; changing them changes nothing here."""
        return [copy_json(row.raw) for row in self._history.rows]

    async def set_messages(self, messages: Iterable[JsonRow]) -> None:
        """Replace the history, as hosts do at resume and to repair a transcript.

        Summaries of an unchanged prefix are found again by their keys, and the last boundary by its record.

        Raises:
            ValueError: a row cannot be kept; nothing has changed.
        """
        rows = _checked_rows(messages)
        await self._loaded()
        if self._file is not None:
            before, ours = self._history, [row.raw for row in self._history.rows]
            kept = await self._file.accepted(ours, rows)
            if kept is None or self._history is not before:
                return  # it is what we have, or a later call has replaced the history meanwhile
            rows = [*kept, *(row.raw for row in before.rows[len(ours) :])]
        history = self._history
        same = _common_prefix(history, rows)
        if same == len(history):
            self._take(rows[same:])
            if self._file is not None:
                await self._file.append(rows[same:])
            return
        fresh = self._new_history()
        for at, raw in enumerate(rows):
            if at < same:
                fresh.add(history.rows[at], history.tokens[at])
            else:
                fresh.add(analyse(raw, preserve_system=self._config.preserve_system))
        self._end_history()
        self._start(fresh)
        if self._file is not None:
            await self._file.replace(rows)

    async def clear(self) -> None:
        """Forget the conversation. Summaries that are stored stay stored, under keys that nobody asks for."""
        await self._loaded()
        self._end_history()
        self._start(self._new_history())
        self._summarizer.forget_refusals()
        self._warned_over_budget = False
        if self._file is not None:
            await self._file.replace([])

    # --- what hosts look for ----------------------------------------------------------------------------------------

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        """Ask `factory` for the system prompt, once per view; stored system rows are hidden then, hook rows aside."""
        self._system.set_factory(factory)

    async def get_token_count(self) -> int:
        """Tokens of the view as it would be served now, without making a boundary; 0 while there is nothing."""
        # No lock: a status line must not wait for a boundary that is under way.
        await self._loaded()
        if not len(self._history) and not self._system.text:
            return 0
        await self._ready(self._history)
        await self._adopt(self._history)
        return self._meter.correct(self._current_view().size() + self._system.tokens)

    async def compact(self, focus: str | None = None) -> int:
        """Make a boundary now, down to `keep_recent`, with the last request's provider and budget.

        Args:
            focus: what the summary of the newest folded part should keep above all.

        Returns:
            Tokens saved: `get_token_count()` before minus after.

        Raises:
            TypeError: `focus` is no text.
        """
        if focus is not None and not isinstance(focus, str):
            raise TypeError(f"focus must be text that says what to keep, got {type(focus).__name__}")
        await self._loaded()
        async with self._lock:
            history = self._history
            request = await self._request(history, self._last_budget, None)
            await self._adopt(history)
            self._derive_sizes(history, request.budget)
            before = await self.get_token_count()
            await self._cross(history, request, "manual", focus)
            after = await self.get_token_count() if history is self._history else before
            await self._outbox.flush()
            return before - after

    async def observe_response(self, event: str, data: dict[str, Any]) -> None:
        """Hear an `llm:response`: the provider's own figures correct our measuring."""
        del event
        if own_call.get() or not isinstance(data, dict) or data.get("status", "ok") != "ok":
            return
        if isinstance(data.get("provider"), str):
            self._summarizer.answered_elsewhere(data["provider"])
        usage = data.get("usage")
        if isinstance(usage, dict):
            self._meter.observe(usage)

    async def stop_waiting(self) -> None:
        """The host has cancelled: a request that waits for summaries is answered now, the work goes on."""
        self._pending.stop_waiting()

    async def preview(self) -> Preview:
        """What a boundary would do if it were made now, without making it or asking anybody."""
        await self._loaded()
        async with self._lock:
            request = await self._request(self._history, self._last_budget, None)
            await self._adopt(self._history)
            self._derive_sizes(self._history, request.budget)
            self._history.advance_segments(self._redact)
            reason = self._reason(request, weighed=False)
            return self._boundary.preview(self._state, request, reason)

    async def pause(self) -> None:
        """Make no boundary and no summary by ourselves until `resume()`, except where a request would not fit."""
        self._paused = True
        self._prefetch.stop()

    async def resume(self) -> None:
        """Go on making boundaries after `pause()`."""
        self._paused = False
        self._weighed = None

    async def settle(self) -> None:
        """Until what is being made ahead of need is there, at most `wait_seconds`.

        For replays and tests: between two requests of a session there is time, between two of theirs there is none.
        """
        await self._prefetch.settled(self._config.wait_seconds)

    async def snapshot(self, view: Sequence[JsonRow]) -> Snapshot:
        """The summaries shown, what they stand for, and where each row of `view`, the last one served, comes from."""
        return await take_snapshot(self._history, self._state, self._store, view, self._count)

    async def recall(self, query: RecallQuery) -> RecallAnswer:
        """Read folded or shortened rows back, as the model asks for them; bounded so that it makes no boundary.

        Raises:
            RecallError: the query names nothing that is there, or there is no room for an answer.
        """
        used = await self.get_token_count()
        reader = RecallReader(self._history, [shown.node for shown in self._state.nodes], self._count)
        threshold = self._config.compact_threshold if self._config.auto_compact else 1.0
        budget = self._served_budget or DEFAULT_BUDGET
        limit = limit_tokens(budget, int(threshold * budget) - used - self._recalling)
        self._recalling += limit  # calls of one turn run side by side and stand in no view yet
        try:
            return await asyncio.to_thread(reader.answer, query, limit)
        finally:
            self._recalling -= limit

    async def statistics(self) -> Statistics:
        """What the summaries of this session have taken so far."""
        tokens = await self.get_token_count()
        shown = [shown.summary for shown in self._state.nodes]
        totals = self._totals
        return Statistics(
            messages=len(self._history),
            view_tokens=tokens,
            budget=self._served_budget,
            requests=totals.requests,
            boundaries=totals.boundaries,
            calls=totals.calls,
            failed=totals.failed,
            input_tokens=totals.input_tokens,
            output_tokens=totals.output_tokens,
            cost_usd=totals.cost_usd,
            from_cache=totals.from_cache,
            waits=totals.waits,
            waited_s=totals.waited,
            longest_wait_s=totals.longest,
            summaries=len(shown),
            digests=sum(summary.fallback for summary in shown),
            coverage=sum(summary.coverage for summary in shown) / len(shown) if shown else None,
        )

    async def prepare(self) -> None:
        """Import what the store needs, in a thread, so that no request waits for that. Connects to nothing."""
        if isinstance(self._store, LayeredStore):
            await self._store.prepare()

    def check_providers(self) -> None:
        """Say in the log when `summary_provider` names nothing mounted."""
        self._providers.check()

    async def close(self) -> None:
        """End what is under way and let go of the store."""
        await self._prefetch.close()
        await self._flight.close()  # before the rest: nothing that still runs may ask a provider any more
        await self._pending.close()
        await self._outbox.close()
        await self._records.close()
        if self._file is not None:
            await self._file.close()
        await self._store.close()

    # --- one request ------------------------------------------------------------------------------------------------

    async def _request(self, history: History, token_budget: int | None, provider: Any | None) -> Request:
        """What this request has to keep to. Nothing is decided yet."""
        if not getattr(self._cancellation, "is_cancelled", False):
            self._pending.resume_waiting()
        seen = self._providers.seen(provider)
        budget = await request_budget(self._config, token_budget, seen)
        await self._system.refresh()
        await self._ready(history)
        self._last_budget = token_budget
        self._served_budget = budget
        return Request(
            budget=budget,
            room=max(1, self._meter.invert(budget)),
            system_tokens=self._system.tokens,
            factory=self._system.text is not None,
            target=await self._target(),
            correct=self._meter.correct,
        )

    async def _target(self) -> Target | None:
        provider = self._providers.summary_provider()
        if provider is None:
            return None
        window = await provider_window(provider)
        room = window.context if window else None
        return Target(provider, self._providers.name_of(provider), self._config.summary_model, room)

    async def _ready(self, history: History) -> None:
        """Ranks loaded and every row that may stand verbatim counted, off the event loop where that is much."""
        if not self._counter.loaded:
            await self._counter.load()
        if self._adopted:
            await self._count_verbatim(history)

    async def _count_verbatim(self, history: History) -> None:
        first = self._state.frontier_row
        if history.uncounted(first) > _MANY:
            await asyncio.to_thread(history.count_rows, first, len(history), self._count)

    def _derive_sizes(self, history: History, budget: int) -> None:
        """Fix the segment length at the first budget; derive it anew when it is too long for a later one."""
        sizes, given = history.sizes, self._config.segment_tokens
        if sizes is not None and (given is not None or sizes[0] <= budget / 4 or sizes[0] <= 512):
            return
        segment = given or derive_segment_tokens(budget)
        summary = self._config.summary_tokens or derive_summary_tokens(segment)
        nodes = [shown.node for shown in self._state.nodes]
        history.start_segments(
            segment,
            summary,
            first_group=regular_frontier(nodes, self._state.frontier),
            first_index=next_index(nodes, self._config.fan_in),
        )

    def _current_view(self) -> View:
        factory = self._system.text is not None
        if self._view is None or self._view.state is not self._state or self._view.factory != factory:
            self._view = View(self._history, self._state, self._count, factory=factory)
        return self._view

    def _weight(self, request: Request) -> tuple[object, ...]:
        """What a boundary is weighed once for; a correction of the measuring is not in it."""
        return (self._history.version, request.budget, self._system.text)

    def _used(self, request: Request) -> int:
        """Tokens of the request as it would go out now, as the provider counts."""
        return request.correct(self._current_view().size() + request.system_tokens)

    def _reason(self, request: Request, *, weighed: bool = True) -> Reason | None:
        """Why a boundary is to be weighed, or None; `weighed` False asks as if it had not been weighed yet."""
        if weighed and self._weighed == self._weight(request):
            return None
        used = self._used(request)
        if used > request.budget:
            return "must_fit"
        if self._config.auto_compact and not self._paused and used >= self._config.compact_threshold * request.budget:
            return "threshold"
        return None

    def _is_prefetched(self, request: Request) -> Prefetched:
        """Whether the texts of a boundary are being made already, and there is room to go on without them."""
        self._prefetch_next(request)  # what has closed since the last request is part of it
        if not self._prefetch.begun_before(self._history.version):
            return None
        threshold = self._config.compact_threshold
        most = threshold + _PATIENCE * (1 - threshold)
        return "room" if self._prefetch.is_under_way and self._used(request) < most * request.budget else "no room"

    def _prefetch_next(self, request: Request) -> None:
        """Above `prefetch_threshold`: have the next boundary's texts made in the background."""
        config, history = self._config, self._history
        if config.prefetch_threshold is None or not config.auto_compact or self._paused or request.target is None:
            return
        cancelled = getattr(self._cancellation, "is_cancelled", False)
        if cancelled or self._used(request) < config.prefetch_threshold * request.budget:
            return
        history.advance_segments(self._redact)
        self._prefetch.look(self._state, request, history.version, len(history.segments))

    async def _cross(self, history: History, request: Request, reason: Reason, focus: str | None = None) -> None:
        """Make a boundary if one is worth making. The state changes after the last await that can fail."""
        history.advance_segments(self._redact)
        state = await self._boundary.make(
            self._state,
            request,
            reason,
            focus,
            lambda: self._history is history,
            ahead=None if reason == "manual" else self._is_prefetched(request),
        )
        if self._history is not history or self._boundary.late:
            return
        self._weighed = self._weight(request)
        if state is None:
            return
        rows_before = len(self._current_view())
        self._prefetch.stop()
        self._state = state
        self._boundary.committed(self._current_view(), request, rows_before)
        self._totals.boundaries += 1
        await self._records.write(self._boundary.record(state, self._records.seed))

    def _serve(self, request: Request) -> list[JsonRow]:
        view = self._current_view()
        if self._served != self._weight(request):
            self._served = self._weight(request)
            self._throttle.served()  # hosts may ask three times for one request
            self._totals.requests += 1
        size = view.size() + request.system_tokens
        used = request.correct(size)
        if used > request.budget:
            self._say_over_budget(view, used, request.budget)
        else:
            self._warned_over_budget = False
        self._meter.served(size)
        return view.rows(self._system.text)

    def _say_over_budget(self, view: View, used: int, budget: int) -> None:
        if self._warned_over_budget:
            return
        self._warned_over_budget = True
        largest = view.largest(self._system.tokens)
        named = ", ".join(f"row {row['row']} ({row['role']}, {row['tokens']:,} tokens)" for row in largest)
        logger.warning(
            "the smallest view is %d tokens, the budget %d; a larger window or smaller rows are needed; largest: %s",
            used,
            budget,
            named,
        )
        self._outbox.put(OVER_BUDGET, {"token_count": used, "budget": budget, "largest": largest})

    # --- records of boundaries --------------------------------------------------------------------------------------

    def _settled(self, history: History) -> bool:
        """True when an adoption of this history comes too late: it was replaced, or another one was quicker."""
        return self._adopted or self._history is not history

    async def _adopt(self, history: History) -> None:
        """Once per history: take up the longest recorded boundary that matches it, without a provider call."""
        if self._settled(history):
            return
        for record in await self._records.matching(history):
            state = None if self._settled(history) else await self._boundary.adopted(record)
            if self._settled(history):
                return
            if state is not None:
                history.start_segments(
                    record.segment_tokens,
                    record.summary_tokens,
                    first_group=regular_frontier(record.nodes, state.frontier),
                    first_index=next_index(record.nodes, self._config.fan_in),
                )
                self._state = state
                self._totals.from_cache += sum(not shown.summary.fallback for shown in state.nodes)
                break
        if self._settled(history):
            return
        self._adopted = True
        await self._count_verbatim(history)


def _texts_of(raw: JsonRow) -> list[str]:
    content = raw.get("content")
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [text for block in blocks if isinstance(block, dict) for text in block.values() if isinstance(text, str)]


def _checked_rows(messages: Any) -> list[JsonRow]:
    if isinstance(messages, str | bytes | dict) or not isinstance(messages, Iterable):
        raise MessageError(f"messages must be a list of messages, got {type(messages).__name__}")
    rows: list[JsonRow] = []
    for at, message in enumerate(messages):
        try:
            rows.append(normalise(message))
        except MessageError as error:
            raise MessageError(f"message {at}: {error}") from None
    return rows


def _common_prefix(history: History, rows: list[JsonRow]) -> int:
    """How many rows at the start are equal."""
    same = 0
    for old, new in zip(history.rows, rows, strict=False):
        if old.raw != new:
            break
        same += 1
    return same
