"""The conversation as a request finds it: resumed, indexed, and measured beside what must stand in the request."""

from __future__ import annotations

from dataclasses import dataclass, replace

from context_summarize.core.view_state import ViewState
from context_summarize.session.announcing import Announcer
from context_summarize.session.conversation import (
    Conversation,
    derive_sizes,
    with_prompt,
    with_view,
)
from context_summarize.session.limits import Host, RequestLimits, RequestOptions, scaled
from context_summarize.session.records import Records
from context_summarize.session.serving import Retention, Server
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services

_PREFETCH = 2 / 3
"""Share of the size at which the next compaction is due from which on its summaries are made."""
_YOUNG, _PREFETCH_YOUNG = 40, 0.9
"""Rows up to which a session may well stay short, as those of sub-agents do; and the same share for it."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One request, or one `compact()`: what it wants, what it has seen, and what it has tried."""

    chat: Conversation
    """As it was seen last."""
    limits: RequestLimits
    """Less the rows that stand beside the view."""
    retained: tuple[str, ...] = ()
    beside: int = 0
    """Tokens of these rows, as far as they are off the limits."""
    is_manual: bool = False
    focus: str | None = None
    used: int = 0
    """Tokens of the request as it would go out now, as the provider counts."""
    due: int = 0
    """Tokens of the request at which the next compaction is due."""
    ahead: float = 0.0
    """Tokens of the request from which on the summaries of that compaction are made."""
    is_near: bool = False
    """A compaction may be due, or its summaries may be made ahead."""
    indexed: object | None = None
    """The builder's `begun` when segments were cut: those of rows that come meanwhile are the next request's."""
    rows: int = 0
    """Of the history then: rows that come later stay verbatim like the newest, or what is waited for would grow."""
    is_due: bool = False
    """True once a compaction was due."""
    until: float | None = None
    """Time of the clock at which its waiting ends; None before it waits."""
    waited: float = 0.0
    """Seconds."""
    in_vain: bool = False
    """Waiting has not brought what is missing."""
    made: ViewState | None = None
    """The view that its compaction has made: one request makes one, and what comes meanwhile is the next one's."""
    is_second: bool = False
    """True once rows that came after it did not fit any more: then there is another."""

    @property
    def is_overtaken(self) -> bool:
        """Whether rows came after its compaction, and the request does not fit with them."""
        has_grown = self.made is not None and len(self.chat.history) > self.rows
        return has_grown and self.used > self.limits.budget and not (self.is_manual or self.is_second)


class Current:
    """Holds the conversation of a session as it is now.

    There is no lock: rows, other requests and the user's steering may come during any wait. What was planned before a
    wait is committed only if history, view and pins are still those that it was planned for.
    """

    def __init__(self, services: Services, tasks: SummaryRegistry, host: Host) -> None:
        self._services, self._config = services, services.config
        self._tasks = tasks
        self._host = host
        self._announcer = Announcer(services.outbox)
        self._server = Server(services.outbox, host.meter, services.count)
        self._retention = Retention(services.count)
        self.records = Records(services, tasks, host.session_id)
        self._chat: Conversation | None = None
        self._under_way = 0
        """Attempts that have a compaction due."""
        self._served: tuple[object, ...] | None = None
        """The request that was served last; a correction of the measuring is not in it."""

    @property
    def chat(self) -> Conversation:
        """The conversation as it is now."""
        if self._chat is None:
            raise RuntimeError("no conversation yet; begin() gives one")
        return self._chat

    def begin(self, chat: Conversation) -> None:
        """Go on with another conversation: what is being made for the old one comes to nothing."""
        if self._chat is not None:
            self._announcer.withdraw(0, len(self._chat.history), 0.0)
            self._tasks.forget_history(chat.history)
        self._chat, self._served = chat, None

    def forget(self) -> None:
        """The session has been cleared: what was refused may be asked again, what does not fit is told again."""
        self._tasks.forget_refusals()
        self._server.forget()

    def _holds(self, attempt: Attempt) -> bool:
        """Whether a plan of this attempt still holds: of the conversation as it is now, and of its segments."""
        return self._is_current(attempt.chat) and attempt.indexed is attempt.chat.builder.begun

    def _is_current(self, chat: Conversation) -> bool:
        """Whether history, view and pins are still those of this conversation."""
        now = self.chat
        return now.history is chat.history and now.view is chat.view and now.steered is chat.steered

    async def tokens(self) -> int:
        """Tokens of the request as it would go out now."""
        system = self._host.system
        if not len(self.chat.history) and not system.text:
            return 0
        await self._resume(system.text is not None)
        return self._host.meter.correct(self._server.view(self.chat).tokens() + system.tokens + self._retention.tokens)

    async def _attempt(self, wanted: RequestOptions) -> Attempt:
        if not self._host.is_cancelled():
            self._tasks.resume_waiting()
        return Attempt(chat=self.chat, limits=await self._host.limits.read(wanted), retained=wanted.retained)

    def _end(self, attempt: Attempt) -> None:
        """Whatever ends an attempt, its waiting is counted."""
        self._under_way -= attempt.is_due
        if attempt.waited:
            self._services.totals.waited(attempt.waited)

    async def _ready(self, attempt: Attempt) -> None:
        """See the conversation as it is now: resumed, beside what is retained, indexed if a compaction may be due."""
        limits = attempt.limits
        while True:
            history = self.chat.history
            await self._resume(limits.system_prompt is not None)
            if (chat := self.chat).history is not history:
                continue
            if attempt.retained or self._retention.tokens:
                self._retention.update(chat, attempt.retained)
                limits = limits.beside(self._retention.tokens - attempt.beside)
                attempt.beside = self._retention.tokens
            derive_sizes(chat, self._config, scaled(self._config, limits.budget))
            attempt.used = limits.used(self._server.view(chat).tokens())
            attempt.due = limits.used(limits.own.again_above(self._left(chat)))
            attempt.chat, attempt.limits = chat, limits
            is_young = len(history) < _YOUNG and not chat.view.compactions
            attempt.ahead = attempt.due * (_PREFETCH_YOUNG if is_young else _PREFETCH)
            attempt.is_near = attempt.is_manual or attempt.used >= min(attempt.ahead, limits.budget)
            if not attempt.is_near or attempt.indexed is chat.builder.begun:
                return
            attempt.indexed, attempt.rows = chat.builder.begun, len(history)
            await chat.advance()

    def _left(self, chat: Conversation) -> int:
        """Tokens of the view that the last compaction left; or of the one that the user has gone back to."""
        return max(self._server.view(chat).left(), chat.steered.undone_at or 0)

    def defer_below(self, limits: RequestLimits) -> int:
        """Tokens of a request below which the next compaction may wait for its summaries, as the provider counts."""
        return limits.used(limits.own.defer_below(self._left(self.chat)))

    async def _resume(self, hides_system: bool) -> None:
        """Once per history: take up the longest recorded compaction that matches it, without a provider call."""
        if not self._host.counter.loaded:
            await self._host.counter.load()
        chat = self.chat
        if not chat.adopted:
            found, steered = await self.records.resume(chat)
            if self.chat.history is chat.history and not self.chat.adopted:
                view = found.view if found else chat.view
                self._chat = replace(with_view(chat, view, self._services.count, hides_system), steered=steered)
                if found is not None:
                    self.chat.builder.start(*found.sizes, view.frontier)
                    self._tasks.compacted(view.shown)
                    self._services.totals.from_cache += sum(not shown.summary.fallback for shown in view.shown)
        if self.chat.groups.hides_system != hides_system:
            self._chat = with_prompt(self.chat, self._services.count, hides_system)
        await self.chat.convert()
