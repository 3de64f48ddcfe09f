"""One boundary from weighing to commit: plans, gets the missing texts, plans again, and says what came of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from context_summarize.config import Config
from context_summarize.core.frames import show_node, show_one_line
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import CompactionRecord, Node, Place, Summary, to_make
from context_summarize.core.plan import Limits, Plan, Planner, Reason
from context_summarize.core.sizes import Sizes
from context_summarize.core.view import View
from context_summarize.core.view_state import ShownNode, ViewState
from context_summarize.events import Outbox
from context_summarize.facts.directives import directives_room, share_out
from context_summarize.session.announcing import Announcer, Made
from context_summarize.session.limits import CompactionThrottle, Request
from context_summarize.summaries.job import Target
from context_summarize.summaries.pending import Pending
from context_summarize.summaries.texts import Tally, Texts
from context_summarize.summaries.usage import Totals
from context_summarize.tokens.measure import Count
from context_summarize.transcript.forged import Frame

logger = logging.getLogger(__name__)

Prefetched = Literal["room", "no room"] | None
"""Whether a boundary's texts are being made already, and there is room to go on without them."""

_MOST_OF_IT = 0.75
"""Share of what a boundary would free that makes it worth making with what is ready, where it could wait."""
_MOST_ROUNDS = 100
"""Planning rounds of one boundary; each round but the last makes at least one text that was missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What the next boundary would do, were it made now. Tokens as the provider counts, estimated."""

    reason: Reason | None
    """Why the next request would make one: `threshold` or `must_fit`; None = it would not."""
    before_tokens: int
    after_tokens: int
    budget: int
    segments: int
    """Stretches of history that would be folded."""
    merged: int
    """Summaries that would be joined from others."""
    messages: tuple[int, int] | None
    """First and last message that would be folded, numbered as frames do; None = none would."""
    calls: int
    """Summaries that are not known yet and would be asked for, unless the store has them."""


@dataclass(slots=True)
class _Report:
    """What the events of one boundary tell."""

    plan: Plan
    tally: Tally
    before_view: int
    waited: float
    new: list[ShownNode]


class Compactor:
    """Makes the boundaries of one history."""

    def __init__(
        self,
        *,
        history: History,
        builder: NodeBuilder,
        texts: Texts,
        pending: Pending,
        floor: CompactionThrottle,
        outbox: Outbox,
        frame: Frame,
        config: Config,
        count: Count,
        clock: Callable[[], float],
        totals: Totals,
    ) -> None:
        self._totals = totals
        self._history = history
        self._builder = builder
        self._texts = texts
        self._announcer = Announcer(outbox, config.target_usage)
        self._frame = frame
        self._config = config
        self._count = count
        self._clock = clock
        self._pending = pending
        self._known: dict[Place, ShownNode] = {}
        self._prefetch: dict[Place, Node] = {}
        """What was started ahead of need and has not been looked at since."""
        self._sizes = Sizes(history, count)
        self._tally = Tally()
        self.late = False
        """True when the last boundary was not made because its summaries were late."""
        self._started = self._waited = 0.0
        self._report: _Report | None = None
        self._throttle = floor

    def limits(self, request: Request) -> Limits:
        """The settings as shares of this request's room."""
        config = self._config
        given = config.elide_tool_results
        shorten_above = min(4_000, max(1, request.room // 10)) if isinstance(given, str) else given
        return Limits(
            budget=request.room - request.system_tokens,
            room=request.room,
            keep_recent=config.keep_recent,
            threshold=config.compact_threshold,
            target=config.target_usage,
            share=config.summary_share,
            fan_in=config.fan_in,
            shorten_above=shorten_above,
            role=config.summary_role,
        )

    async def make(
        self,
        state: ViewState,
        request: Request,
        reason: Reason,
        focus: str | None,
        current: Callable[[], bool],
        *,
        ahead: Prefetched = None,
    ) -> ViewState | None:
        """The state after a boundary, or None when none is worth making. Nothing is changed by it.

        Args:
            current: turns false when the history has been replaced meanwhile.
            ahead: where there is room to go on, the boundary is made only if it takes no waiting; where there is
                none, what is ready is folded rather than waited for.
        """
        # A digest that is shown is asked for again: this is the next boundary.
        self._known = {place: shown for place, shown in self._known.items() if not shown.summary.fallback}
        self._know(state)
        self.late = False
        self._started, self._waited = self._clock(), 0.0
        try:
            for _ in range(_MOST_ROUNDS):
                plan = self._next_plan(state, request, reason, focus, ahead)
                worthwhile = self._worthwhile(plan, request)
                if worthwhile and not plan.missing:
                    return self._state(state, plan, request)
                if not worthwhile or ahead == "room" or not await self._get_missing(plan, request) or not current():
                    if not self.late:
                        self._withdraw(plan, request)
                    return None
            logger.error("a plan did not come to its end in %d rounds; the view stays as it is", _MOST_ROUNDS)
            self._withdraw(plan, request)
            return None
        finally:
            self._totals.waited_for(self._waited)

    def _next_plan(
        self, state: ViewState, request: Request, reason: Reason, focus: str | None, ahead: Prefetched
    ) -> Plan:
        """The plan by what is known now; one that takes no waiting, where `ahead` asks for it and there is one."""
        plan = self._planner(state, request).boundary(reason, focus)
        if not plan.missing or ahead is None:
            return plan
        ready = self._planner(state, request).boundary(reason, ready_only=True)
        if ahead == "room":
            plan = self._planner(state, request).boundary(reason, ahead=True)
        enough = _MOST_OF_IT * plan.freed if ahead == "room" else 0
        return ready if not ready.missing and ready.freed >= enough and self._relieves(ready, request) else plan

    async def _get_missing(self, plan: Plan, request: Request) -> bool:
        """Get a plan's missing texts, digests for late ones; False where they are late and the view fits as it is."""
        await self._announcer.announce(request, plan.reason, self._used(plan, request), len(self._history))
        left = max(0.0, self._config.wait_seconds - self._waited)
        late = await self._fetch(plan.missing, request, None if plan.reason == "manual" else left)
        if late and plan.reason == "threshold":
            self.late = True  # the work goes on
            return False
        for node in late:
            self._known[node.place] = self._show(node, await self._stand_in(node))
        return True

    def _know(self, state: ViewState) -> None:
        """Note the sizes of what a view shows."""
        for shown in state.nodes:
            if not shown.summary.fallback:
                self._known[shown.node.place] = self._show(shown.node, shown.summary) if shown.line else shown

    def _planner(self, state: ViewState, request: Request) -> Planner:
        def known(node: Node) -> int | None:
            shown = self._known.get(node.place)
            return None if shown is None else shown.tokens

        return Planner(
            self._history,
            self._builder,
            state,
            self.limits(request),
            known,
            self._count,
            factory=request.factory,
            sizes=self._sizes,
        )

    def _relieves(self, plan: Plan, request: Request) -> bool:
        """True when a plan frees enough and leaves the view below the threshold."""
        after = plan.tokens_after + request.system_tokens
        return (
            plan.freed >= self._config.min_fold * request.room and after < self._config.compact_threshold * request.room
        )

    def _worthwhile(self, plan: Plan, request: Request) -> bool:
        """A boundary throws the provider's prompt cache away, so it must free enough, or be needed to fit."""
        if plan.freed <= 0:
            return False
        if plan.reason == "manual":
            return True
        if plan.reason == "must_fit" and plan.fits:
            return True
        if plan.reason == "must_fit":
            return self._throttle.may_fire()
        return plan.freed >= self._config.min_fold * request.room

    async def _fetch(self, nodes: Sequence[Node], request: Request, seconds: float | None) -> list[Node]:
        """Get the texts of nodes, waiting at most so long; the nodes that are late."""
        for node in nodes:
            self._start(node, request)
        before = self._clock()
        try:
            await self._pending.wait([node.key for node in nodes], seconds)
        finally:
            self._waited += self._clock() - before
        late: list[Node] = []
        for node in nodes:
            if not self._pending.ended(node.key):
                late.append(node)
                continue
            summary = self._pending.take(node.key) or await self._stand_in(node)
            self._known[node.place] = self._show(node, summary)
        return late

    def _start(self, node: Node, request: Request) -> None:
        texts, builder, tally = self._texts, self._builder, self._tally
        self._pending.start(node.key, lambda: texts.get(node, builder, request.target, tally))

    def preview(self, state: ViewState, request: Request, reason: Reason | None) -> Preview:
        """What a boundary now would do; sizes of summaries that do not exist yet are estimated."""
        self._know(state)
        plan = self._planner(state, request).boundary(reason or "threshold")
        folded = plan.frontier > state.frontier
        return Preview(
            reason=reason if self._worthwhile(plan, request) else None,
            before_tokens=self._used(plan, request),
            after_tokens=request.correct(plan.tokens_after + request.system_tokens),
            budget=request.budget,
            segments=plan.segments,
            merged=plan.merged,
            messages=self._history.message_range(state.frontier, plan.frontier) if folded else None,
            calls=len({node.key for node in to_make(plan.missing, self._is_known)}),
        )

    def _is_known(self, node: Node) -> bool:
        return node.place in self._known

    # --- ahead of need ----------------------------------------------------------------------------------------------

    def start_prefetch(self, state: ViewState, request: Request, tried: set[Place]) -> list[str]:
        """Start what the next boundary will need and can be made now, each node once; the keys of what was started.

        Args:
            tried: places of nodes that were started for this boundary before; those started now are added.
        """
        if request.target is None:
            return []
        self._know(state)
        plan = self._planner(state, request).needed()
        unmade = {node.place: node for node in to_make(plan.missing, self._is_known)}
        first = [node for node in unmade.values() if all(map(self._is_known, node.children))]
        exact = all(node.children for node in first)
        started: list[str] = []
        for node in first:
            # A rest over nodes is wasted where estimates merge too much, or where more nodes follow.
            wasted = bool(node.children) and node.is_rest and not (exact and plan.reached)
            if not wasted and node.place not in tried:
                tried.add(node.place)
                self._prefetch[node.place] = node
                self._pending.start(node.key, self._prefetching(node, request.target))
                started.append(node.key)
        return started

    def _prefetching(self, node: Node, target: Target) -> Callable[[], Awaitable[Summary]]:
        texts, builder, tally = self._texts, self._builder, self._tally
        return lambda: texts.summarise(node, builder, target, tally)

    def learn_prefetched(self) -> None:
        """Note the sizes of what was made ahead; where that came to nothing the boundary itself asks again."""
        for place, node in list(self._prefetch.items()):
            if not self._pending.ended(node.key):
                continue
            del self._prefetch[place]
            summary = self._pending.take(node.key)
            if summary is not None:
                self._known[place] = self._show(node, summary)

    async def _stand_in(self, node: Node) -> Summary:
        """The text of a node without asking anybody: from the store, else by code."""
        return await self._texts.get(node, self._builder, None, self._tally)

    def _show(self, node: Node, summary: Summary) -> ShownNode:
        return show_node(self._history, node, summary, self._frame, self._config.summary_role, self._count)

    def _share_directives(self, shown: list[ShownNode], most: int) -> list[ShownNode]:
        """The nodes with standing rules of at most so many tokens in all: older nodes give way, and stay so."""
        shares = share_out([item.summary.directives for item in shown], most, self._count)
        return [
            item if share == item.summary.directives else self._show(item.node, replace(item.summary, directives=share))
            for item, share in zip(shown, shares, strict=True)
        ]

    def _state(self, state: ViewState, plan: Plan, request: Request) -> ViewState:
        assert self._history.sizes is not None, "nodes exist only once the sizes are known"
        most = min(request.room // 50, directives_room(self._history.sizes[1]))
        shown = self._share_directives([self._known[node.place] for node in plan.nodes], most)
        lines = [show_one_line(self._history, item, self._count) for item in shown[: plan.lines]]
        old = {item.node.place for item in state.nodes}
        self._report = _Report(
            plan=plan,
            tally=self._tally,
            before_view=self._used(plan, request),
            waited=self._clock() - self._started,
            new=[item for item in shown if item.node.place not in old],
        )
        return ViewState(
            nodes=(*lines, *shown[plan.lines :]),
            frontier=plan.frontier,
            frontier_row=plan.frontier_row,
            shortened=plan.shortened,
            newest_user=plan.newest_user,
            rows_at_compaction=len(self._history),
            boundaries=state.boundaries + 1,
        )

    # --- what came of it --------------------------------------------------------------------------------------------

    def _used(self, plan: Plan, request: Request) -> int:
        """Tokens of the request as it stands, as the provider counts."""
        return request.correct(plan.tokens_before + request.system_tokens)

    def _withdraw(self, plan: Plan, request: Request) -> None:
        self._announcer.withdraw(self._used(plan, request), len(self._history), self._clock() - self._started)

    def abandon(self) -> None:
        """The history is gone: a boundary that was announced can no longer be made."""
        self._announcer.withdraw(0, len(self._history), 0.0)

    def committed(self, view: View, request: Request, rows_before: int) -> None:
        """Note the events of the boundary that has just become the view's state."""
        report, self._report = self._report, None
        assert report is not None
        self._tally = Tally()
        self._sizes.forget_before(view.state.frontier_row)
        self._throttle.fired()
        self._totals.from_cache += report.tally.from_cache
        keep = {shown.node.place for shown in view.state.nodes}
        self._known = {place: shown for place, shown in self._known.items() if place in keep}
        self._prefetch.clear()
        after = request.correct(view.size() + request.system_tokens)
        made = Made(
            before_tokens=report.before_view,
            after_tokens=after,
            before_rows=rows_before,
            after_rows=len(view),
            segments=report.plan.segments,
            merged=report.plan.merged,
            from_cache=report.tally.from_cache,
            digests=sum(shown.summary.fallback for shown in view.state.nodes),
            waited=report.waited,
            level=report.plan.level,
            new=[shown.row["content"] for shown in report.new],
        )
        self._announcer.made(request, report.plan.reason, made, len(self._history))

    # --- records ----------------------------------------------------------------------------------------------------

    def record(self, state: ViewState, seed: str) -> CompactionRecord | None:
        """The committed boundary as it is kept, found again by the rendered rows before its frontier."""
        sizes = self._history.sizes
        if sizes is None or state.frontier == 0:
            return None
        return CompactionRecord(
            hash=self._history.running_hash(seed, state.frontier),
            frontier_group=state.frontier,
            rendered_groups=len(self._history.rendered),
            segment_tokens=sizes[0],
            summary_tokens=sizes[1],
            nodes=tuple(shown.node for shown in state.nodes),
            shortened=tuple(self._history.portable(index, keep) for index, keep in sorted(state.shortened.items())),
            newest_user=state.newest_user,
            created=time.time(),
        )

    async def adopted(self, record: CompactionRecord) -> ViewState | None:
        """The state that a record stands for, without a provider call; a text that is gone becomes a digest."""
        history = self._history
        if not _is_sound(record, history):
            return None
        tally = Tally()
        shown: list[ShownNode] = []
        for node in record.nodes:
            summary = await self._texts.get(node, self._builder, None, tally)
            shown.append(self._show(node, summary))
        shown = self._share_directives(shown, directives_room(record.summary_tokens))
        newest = record.newest_user
        return ViewState(
            nodes=tuple(shown),
            frontier=record.frontier_group,
            frontier_row=history.row_after(record.frontier_group, len(history) - self._config.keep_recent),
            shortened=history.from_portable(record.shortened),
            newest_user=newest if newest is not None and newest in history.users else None,
            rows_at_compaction=history.row_of(record.rendered_groups),
            boundaries=1,
        )


def _is_sound(record: CompactionRecord, history: History) -> bool:
    """Whether a record's nodes tile what lies before its frontier, and the history reaches that far."""
    at = 0
    for node in record.nodes:
        if node.first_group != at or node.end_group <= at:
            return False
        at = node.end_group
    sizes = record.segment_tokens > 0 and record.summary_tokens > 0
    return sizes and 0 < at == record.frontier_group <= len(history.rendered)
