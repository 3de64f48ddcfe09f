"""`SummarizingContextManager`: the host's methods. Holds history and view state, and runs plan, texts and view."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from .boundary import Boundary, Floor, Request, next_index, regular_frontier
from .config import Config
from .errors import MessageError
from .events import MESSAGE_ADDED, OVER_BUDGET, Outbox
from .history import Addresses, History, measure
from .host import Providers, provider_window, request_budget
from .messages import analyse, copy_json, normalise
from .pending import Pending
from .plan import Reason
from .prompts import PromptSet, load_prompts
from .redact import build_redactor
from .segments import SCHEMA_VERSION, Redact, derive_segment_tokens, derive_summary_tokens
from .store import MemoryStore, SingleFlight, SummaryStore
from .summarizer import Summarizer, Target, own_call
from .texts import Texts
from .tokens import Meter, TokenCounter
from .types import JsonRow
from .view import View, ViewState

logger = logging.getLogger(__name__)

_MANY = 200
"""Rows above which counting goes to a thread."""


class SummarizingContextManager:
    """An Amplifier context manager that keeps the whole history and sends a view of it that fits the window.

    `SummarizingContextManager(max_tokens=40_000, keep_recent=10)` works without a host: then the history is kept, and
    summaries are written by the provider passed to `get_messages_for_request`, or are digests where there is none.

    Args:
        coordinator: the session's coordinator; None without a host.
        config: settings, checked or as a mapping; or pass them as keywords.
        store: where summaries are kept; memory by default.
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
        self._store: SummaryStore = store if store is not None else MemoryStore()
        self._flight = SingleFlight()
        self._pending = Pending()
        self._writes: set[asyncio.Task[None]] = set()
        self._floor = Floor()
        self._summarizer = Summarizer(self._config, self._prompts, self._count, clock=clock, sleep=sleep)
        self._texts = Texts(self._config, self._store, self._flight, self._summarizer, self._outbox, self._count, clock)
        self._redact: Redact | None = build_redactor(self._config.redact)
        self._lock = asyncio.Lock()
        self._system_prompt_factory: Callable[[], Awaitable[str]] | None = None
        self._system_prompt: str | None = None
        self._last_budget: int | None = None
        self._warned_over_budget = False
        self._start(History())

    def _start(self, history: History) -> None:
        """Begin anew with this history; nothing of the old one's view is kept."""
        self._history = history
        self._state = ViewState()
        self._view: View | None = None
        self._adopted = False
        self._weighed: tuple[object, ...] | None = None
        self._served: tuple[object, ...] | None = None
        self._addresses = Addresses(history, self._prompts.segment.digest, self._prompts.merge.digest, self._redact)
        self._boundary = Boundary(
            history=history,
            addresses=self._addresses,
            texts=self._texts,
            pending=self._pending,
            floor=self._floor,
            outbox=self._outbox,
            frame=self._prompts.frame.fill,
            config=self._config,
            count=self._count,
            clock=self._clock,
        )

    # --- the contract -----------------------------------------------------------------------------------------------

    async def add_message(self, message: JsonRow) -> None:
        """Append one message to the history.

        Raises:
            ValueError: the row cannot be kept; nothing has changed.
        """
        raw = normalise(message)
        history = self._history
        # The row is in place before anything is awaited, so that rows keep the order of the calls.
        history.add(analyse(raw, preserve_system=self._config.preserve_system))
        index = len(history) - 1
        if not self._counter.loaded:
            await self._counter.load()
        size = sum(len(text) for text in _texts_of(raw))
        if size > 50_000:
            await asyncio.to_thread(history.count_rows, index, index + 1, self._count)
        else:
            history.count_rows(index, index + 1, self._count)
        if self._config.debug:
            data = {"role": raw["role"], "tokens": history.tokens[index], "message_count": len(history)}
            self._outbox.put(MESSAGE_ADDED, data)
            await self._outbox.flush()

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any | None = None
    ) -> list[JsonRow]:
        """The rows for the next request, within the budget; see `Plan` for what is folded and why.

        Args:
            token_budget: tokens that the request may hold; by default what the provider's window gives.
            provider: the provider that will be asked; it writes the summaries too unless `summary_provider` is set.
        """
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
            await self._outbox.flush()
            return rows

    async def get_messages(self) -> list[JsonRow]:
        """Every message that was added, in order and unchanged, as copies."""
        return self.messages

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
        history = self._history
        same = _common_prefix(history, rows)
        if same == len(history):
            for raw in rows[same:]:
                history.add(analyse(raw, preserve_system=self._config.preserve_system))
            return
        fresh = History()
        for at, raw in enumerate(rows):
            if at < same:
                fresh.add(history.rows[at], history.tokens[at])
            else:
                fresh.add(analyse(raw, preserve_system=self._config.preserve_system))
        self._boundary.abandon()
        self._pending.forget_done()
        self._start(fresh)

    async def clear(self) -> None:
        """Forget the conversation. Summaries that are stored stay stored, under keys that nobody asks for."""
        self._boundary.abandon()
        self._pending.forget_done()
        self._start(History())
        self._summarizer.forget_refusals()
        self._warned_over_budget = False

    # --- what hosts look for ----------------------------------------------------------------------------------------

    async def set_system_prompt_factory(self, factory: Callable[[], Awaitable[str]] | None) -> None:
        """Ask `factory` for the system prompt, once per view; stored system rows are hidden then, hook rows aside."""
        self._system_prompt_factory = factory
        self._system_prompt = None

    async def get_token_count(self) -> int:
        """Tokens of the view as it would be served now, without making a boundary; 0 while there is nothing."""
        # No lock: a status line must not wait for a boundary that is under way.
        if not len(self._history) and not self._system_prompt:
            return 0
        await self._ready(self._history)
        await self._adopt(self._history)
        return self._meter.correct(self._current_view().size() + self._system_tokens())

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

    def check_providers(self) -> None:
        """Say in the log when `summary_provider` names nothing mounted."""
        self._providers.check()

    async def close(self) -> None:
        """End what is under way and let go of the store."""
        await self._flight.close()  # first: nothing that still runs may ask a provider any more
        await self._pending.close()
        await self._outbox.close()
        if self._writes:
            await asyncio.wait(self._writes, timeout=0.5)
        await self._store.close()

    # --- one request ------------------------------------------------------------------------------------------------

    async def _request(self, history: History, token_budget: int | None, provider: Any | None) -> Request:
        """What this request has to keep to. Nothing is decided yet."""
        if not getattr(self._cancellation, "is_cancelled", False):
            self._pending.resume_waiting()
        seen = self._providers.seen(provider)
        budget = await request_budget(self._config, token_budget, seen)
        await self._refresh_system_prompt()
        await self._ready(history)
        self._last_budget = token_budget
        return Request(
            budget=budget,
            room=max(1, self._meter.invert(budget)),
            system_tokens=self._system_tokens(),
            factory=self._hides_system(),
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

    async def _refresh_system_prompt(self) -> None:
        factory = self._system_prompt_factory
        if factory is None:
            return
        try:
            prompt = await factory()
        except Exception:
            # Half a session without its instructions is worse than one with those of a moment ago.
            logger.warning("the system prompt factory failed; the last prompt is used", exc_info=True)
            return
        self._system_prompt = prompt if isinstance(prompt, str) else None

    def _hides_system(self) -> bool:
        return self._system_prompt_factory is not None and self._system_prompt is not None

    def _system_tokens(self) -> int:
        if not self._hides_system() or not self._system_prompt:
            return 0
        return measure({"role": "system", "content": self._system_prompt}, self._count)

    async def _ready(self, history: History) -> None:
        """Ranks loaded and every row that may stand verbatim counted, off the event loop where that is much."""
        if not self._counter.loaded:
            await self._counter.load()
        first = self._state.frontier_row if self._adopted else 0
        if self._adopted and history.uncounted(first) > _MANY:
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
        factory = self._hides_system()
        if self._view is None or self._view.state is not self._state or self._view.factory != factory:
            self._view = View(self._history, self._state, self._count, factory=factory)
        return self._view

    def _weight(self, request: Request) -> tuple[object, ...]:
        """What a boundary is weighed once for; a correction of the measuring is not in it."""
        return (self._history.version, request.budget, self._system_prompt)

    def _reason(self, request: Request) -> Reason | None:
        """Why a boundary is to be weighed, or None."""
        if self._weighed == self._weight(request):
            return None
        used = request.correct(self._current_view().size() + request.system_tokens)
        if used > request.budget:
            return "must_fit"
        if self._config.auto_compact and used >= self._config.compact_threshold * request.budget:
            return "threshold"
        return None

    async def _cross(self, history: History, request: Request, reason: Reason, focus: str | None = None) -> None:
        """Make a boundary if one is worth making. The state changes after the last await that can fail."""
        history.advance_segments(self._redact)
        state = await self._boundary.make(self._state, request, reason, focus, lambda: self._history is history)
        if self._history is not history or self._boundary.late:
            return
        self._weighed = self._weight(request)
        if state is None:
            return
        rows_before = len(self._current_view())
        self._state = state
        self._boundary.committed(self._current_view(), request, rows_before)
        await self._record(history, state)

    def _serve(self, request: Request) -> list[JsonRow]:
        view = self._current_view()
        if self._served != self._weight(request):
            self._served = self._weight(request)
            self._floor.served()  # hosts may ask three times for one request
        size = view.size() + request.system_tokens
        used = request.correct(size)
        if used > request.budget:
            self._say_over_budget(view, used, request.budget)
        else:
            self._warned_over_budget = False
        self._meter.served(size)
        return view.rows(self._system_prompt if self._hides_system() else None)

    def _say_over_budget(self, view: View, used: int, budget: int) -> None:
        if self._warned_over_budget:
            return
        self._warned_over_budget = True
        largest = view.largest(self._system_tokens())
        named = ", ".join(f"row {row['row']} ({row['role']}, {row['tokens']:,} tokens)" for row in largest)
        logger.warning(
            "the smallest view is %d tokens, the budget %d; a larger window or smaller rows are needed; largest: %s",
            used,
            budget,
            named,
        )
        self._outbox.put(OVER_BUDGET, {"token_count": used, "budget": budget, "largest": largest})

    # --- records of boundaries --------------------------------------------------------------------------------------

    def _seed(self) -> str:
        """What a record's hash begins with: summaries made by other prompts or settings are not adopted."""
        parts = (
            SCHEMA_VERSION,
            self._prompts.segment.digest,
            self._prompts.merge.digest,
            str((self._config.segment_tokens, self._config.summary_tokens, self._config.fan_in, self._config.redact)),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    async def _record(self, history: History, state: ViewState) -> None:
        record = self._boundary.record(state, self._seed())
        if record is None:
            return
        # The boundary is committed: its record is written whoever is cancelled meanwhile.
        task = asyncio.create_task(self._store.put_boundary(record))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.shield(task)

    def _settled(self, history: History) -> bool:
        """True when an adoption of this history comes too late: it was replaced, or another one was quicker."""
        return self._adopted or self._history is not history

    async def _adopt(self, history: History) -> None:
        """Once per history: take up the longest recorded boundary that matches it, without a provider call."""
        if self._settled(history):
            return
        empty = await self._store.is_empty()
        if self._settled(history):
            return
        if len(history.rendered) > 1 and not empty:
            digests = list(history.running_hashes(self._seed(), len(history.rendered)))
            records = await self._store.find_boundary(digests[::-1])
            for record in records:
                state = await self._boundary.adopted(record)
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
                    break
        if self._settled(history):
            return
        self._adopted = True
        if history.uncounted(self._state.frontier_row) > _MANY:
            await asyncio.to_thread(history.count_rows, self._state.frontier_row, len(history), self._count)


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
