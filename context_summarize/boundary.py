"""One boundary from weighing to commit: plans, gets the missing texts, plans again, and says what came of it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .config import Config
from .events import COMPACTION, INCLUDE, POST_COMPACT, PRE_COMPACT, Outbox
from .history import Addresses, Count, History
from .pending import Pending
from .plan import Limits, Plan, Planner, Reason, expanded
from .rules import rules_room, share_out
from .sizes import Sizes
from .summarizer import Target
from .texts import Tally, Texts
from .types import BoundaryRecord, Node, Summary
from .view import Frame, ShownNode, View, ViewState, show_node, show_one_line

logger = logging.getLogger(__name__)

_WINDOW = 10
_MOST = 2
"""A floor that cannot shrink fires at most two boundaries in ten requests."""
_MOST_ROUNDS = 100
"""Planning rounds of one boundary; each round but the last makes at least one text that was missing."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one request has to keep to."""

    budget: int
    """Tokens, as the provider counts."""
    room: int
    """The same in our own tokens."""
    system_tokens: int
    factory: bool
    """Stored system rows are hidden behind the factory's prompt."""
    target: Target | None
    """Who writes summaries; None = nobody, digests only."""
    correct: Callable[[int], int]
    """Our tokens → the provider's."""


@dataclass(slots=True)
class _Report:
    """What the events of one boundary tell."""

    plan: Plan
    tally: Tally
    before_view: int
    waited: float
    new: list[ShownNode]


class Floor:
    """Holds back boundaries of a view that cannot fit: at most two in ten requests, whatever the host does between."""

    def __init__(self) -> None:
        self._requests = 0
        self._made_at: deque[int] = deque(maxlen=_MOST)

    def served(self) -> None:
        """One request has been served."""
        self._requests += 1

    def fired(self) -> None:
        """A boundary has been made."""
        self._made_at.append(self._requests)

    def may_fire(self) -> bool:
        """True while fewer than two boundaries were made within the last ten requests."""
        return sum(1 for at in self._made_at if self._requests - at < _WINDOW) < _MOST


def regular_frontier(nodes: Sequence[Node], frontier: int) -> int:
    """Where regular segments go on: before a rest over rows, else at the frontier."""
    last = nodes[-1] if nodes else None
    return last.first_group if last is not None and last.is_rest and not last.children else frontier


def next_index(nodes: Sequence[Node], fan_in: int) -> int:
    """Index of the next regular segment after these nodes."""
    for node in reversed(nodes):
        for inner in reversed(expanded(node)):
            if not inner.is_rest:
                return int((inner.index + 1) * fan_in**inner.level)
    return 0


class Boundary:
    """Makes the boundaries of one history."""

    def __init__(
        self,
        *,
        history: History,
        addresses: Addresses,
        texts: Texts,
        pending: Pending,
        floor: Floor,
        outbox: Outbox,
        frame: Frame,
        config: Config,
        count: Count,
        clock: Callable[[], float],
    ) -> None:
        self._history = history
        self._addresses = addresses
        self._texts = texts
        self._outbox = outbox
        self._frame = frame
        self._config = config
        self._count = count
        self._clock = clock
        self._pending = pending
        self._known: dict[tuple[str, int, int], ShownNode] = {}
        self._sizes = Sizes(history, count)
        self._tally = Tally()
        self.late = False
        """True when the last boundary was not made because its summaries were late."""
        self._announced = False
        self._report: _Report | None = None
        self._floor = floor

    def limits(self, request: Request) -> Limits:
        """The settings as shares of this request's room."""
        config = self._config
        given = config.elide_tool_results
        elide = min(4_000, max(1, request.room // 10)) if isinstance(given, str) else given
        return Limits(
            budget=request.room - request.system_tokens,
            room=request.room,
            keep_recent=config.keep_recent,
            threshold=config.compact_threshold,
            target=config.target_usage,
            share=config.summary_share,
            fan_in=config.fan_in,
            elide=elide,
            role=config.summary_role,
        )

    async def make(
        self, state: ViewState, request: Request, reason: Reason, focus: str | None, current: Callable[[], bool]
    ) -> ViewState | None:
        """The state after a boundary, or None when none is worth making. Nothing is changed by it.

        `current` turns false when the history has been replaced meanwhile.
        """
        # A digest that is shown is asked for again: this is the next boundary.
        self._known = {place: shown for place, shown in self._known.items() if not shown.summary.digest}
        for shown in state.nodes:
            if not shown.summary.digest:
                self._known[shown.node.place] = self._show(shown.node, shown.summary) if shown.line else shown
        self.late = False
        started = self._clock()
        for _ in range(_MOST_ROUNDS):
            plan = self._plan(state, request, reason, focus)
            if not self._worthwhile(plan, request):
                self._withdraw(plan, request, self._clock() - started)
                return None
            if not plan.missing:
                return self._state(state, plan, request, self._clock() - started)
            await self._announce(state, request, reason, plan)
            late = await self._fetch(plan.missing, request, None if reason == "manual" else self._left(started))
            if late and reason == "threshold":
                self.late = True  # the view fits: it is sent as it is, and the work goes on
                return None
            for node in late:
                self._known[node.place] = self._show(node, await self._stand_in(node))
            if not current():
                self._withdraw(plan, request, self._clock() - started)
                return None
        logger.error("a plan did not come to its end in %d rounds; the view stays as it is", _MOST_ROUNDS)
        self._withdraw(plan, request, self._clock() - started)
        return None

    def _plan(self, state: ViewState, request: Request, reason: Reason, focus: str | None) -> Plan:
        def known(node: Node) -> int | None:
            shown = self._known.get(node.place)
            return None if shown is None else shown.tokens

        planner = Planner(
            self._history,
            self._addresses,
            state,
            self.limits(request),
            known,
            self._count,
            factory=request.factory,
            sizes=self._sizes,
        )
        return planner.boundary(reason, focus)

    def _worthwhile(self, plan: Plan, request: Request) -> bool:
        """A boundary throws the provider's prompt cache away, so it must free enough, or be needed to fit."""
        if plan.freed <= 0:
            return False
        if plan.reason == "manual":
            return True
        if plan.reason == "must_fit" and plan.fits:
            return True
        if plan.reason == "must_fit":
            return self._floor.may_fire()
        return plan.freed >= self._config.min_fold * request.room

    def _left(self, started: float) -> float:
        return max(0.0, self._config.wait_seconds - (self._clock() - started))

    async def _fetch(self, nodes: Sequence[Node], request: Request, seconds: float | None) -> list[Node]:
        """Get the texts of nodes, waiting at most so long; the nodes that are late."""
        for node in nodes:
            self._start(node, request)
        await self._pending.wait([node.key for node in nodes], seconds)
        late: list[Node] = []
        for node in nodes:
            if not self._pending.ended(node.key):
                late.append(node)
                continue
            summary = self._pending.take(node.key) or await self._stand_in(node)
            self._known[node.place] = self._show(node, summary)
        return late

    def _start(self, node: Node, request: Request) -> None:
        texts, addresses, tally = self._texts, self._addresses, self._tally
        self._pending.start(node.key, lambda: texts.get(node, addresses, request.target, tally))

    async def _stand_in(self, node: Node) -> Summary:
        """The text of a node without asking anybody: from the store, else by code."""
        return await self._texts.get(node, self._addresses, None, self._tally)

    def _show(self, node: Node, summary: Summary) -> ShownNode:
        return show_node(self._history, node, summary, self._frame, self._config.summary_role, self._count)

    def _share_rules(self, shown: list[ShownNode], most: int) -> list[ShownNode]:
        """The nodes with standing rules of at most so many tokens in all: older nodes give way, and stay so."""
        shares = share_out([item.summary.rules for item in shown], most, self._count)
        return [
            item if share == item.summary.rules else self._show(item.node, replace(item.summary, rules=share))
            for item, share in zip(shown, shares, strict=True)
        ]

    def _state(self, state: ViewState, plan: Plan, request: Request, waited: float) -> ViewState:
        assert self._history.sizes is not None, "nodes exist only once the sizes are known"
        most = min(request.room // 50, rules_room(self._history.sizes[1], 0))
        shown = self._share_rules([self._known[node.place] for node in plan.nodes], most)
        lines = [show_one_line(self._history, item, self._count) for item in shown[: plan.lines]]
        old = {item.node.place for item in state.nodes}
        self._report = _Report(
            plan=plan,
            tally=self._tally,
            before_view=request.correct(plan.tokens_before + request.system_tokens),
            waited=waited,
            new=[item for item in shown if item.node.place not in old],
        )
        return ViewState(
            nodes=(*lines, *shown[plan.lines :]),
            frontier=plan.frontier,
            frontier_row=plan.frontier_row,
            elided=plan.elided,
            newest_user=plan.newest_user,
            boundary_rows=len(self._history),
            boundaries=state.boundaries + 1,
        )

    # --- events -----------------------------------------------------------------------------------------------------

    async def _announce(self, state: ViewState, request: Request, reason: Reason, plan: Plan) -> None:
        if self._announced:
            return
        self._announced = True
        self._put_pre(request, reason, request.correct(plan.tokens_before + request.system_tokens))
        await self._outbox.flush()

    def _put_pre(self, request: Request, reason: Reason, used: int) -> None:
        self._outbox.put(
            PRE_COMPACT,
            {
                "message_count": len(self._history),
                "tokens": used,
                "token_count": used,
                "budget": request.budget,
                "usage": round(used / request.budget, 4),
                "reason": reason,
            },
        )

    def _withdraw(self, plan: Plan, request: Request, waited: float) -> None:
        """Close an announcement of a boundary that is not made after all: nothing was saved."""
        self._close(request.correct(plan.tokens_before + request.system_tokens), waited)

    def abandon(self) -> None:
        """Close an announcement whose boundary can no longer be made: the history is gone."""
        self._close(0, 0.0)

    def _close(self, used: int, waited: float) -> None:
        if self._announced:
            self._outbox.put(POST_COMPACT, _post(len(self._history), used, waited=waited))
        self._announced = False

    def committed(self, view: View, request: Request, rows_before: int) -> None:
        """Note the events of the boundary that has just become the view's state."""
        report, self._report = self._report, None
        assert report is not None
        self._tally = Tally()
        self._sizes.forget_before(view.state.frontier_row)
        self._floor.fired()
        keep = {shown.node.place for shown in view.state.nodes}
        self._known = {place: shown for place, shown in self._known.items() if place in keep}
        plan, tally = report.plan, report.tally
        if not self._announced:
            self._put_pre(request, plan.reason, report.before_view)
        self._announced = False
        after = request.correct(view.size() + request.system_tokens)
        rows_after = len(view)
        digests = sum(1 for shown in view.state.nodes if shown.summary.digest)
        counts = (plan.segments, plan.merged, tally.from_cache, digests)
        saved = report.before_view - after
        self._outbox.put(POST_COMPACT, _post(rows_after, after, saved, *counts, waited=report.waited))
        self._outbox.put(
            COMPACTION,
            {
                "before_tokens": report.before_view,
                "after_tokens": after,
                "before_messages": rows_before,
                "after_messages": rows_after,
                "budget": request.budget,
                "target_tokens": int(self._config.target_usage * request.budget),
                "strategy_level": plan.level,
            },
        )
        for shown in report.new:
            self._outbox.put(INCLUDE, {"source": "context-summarize", "content": shown.row["content"]})
        logger.info(
            "boundary: %d -> %d tokens, %d segments, %d merged, %d cached, %d digests",
            report.before_view,
            after,
            plan.segments,
            plan.merged,
            tally.from_cache,
            tally.digests,
        )

    # --- records ----------------------------------------------------------------------------------------------------

    def record(self, state: ViewState, seed: str) -> BoundaryRecord | None:
        """The committed boundary as it is kept, found again by the rendered rows before its frontier."""
        sizes = self._history.sizes
        if sizes is None or state.frontier == 0:
            return None
        return BoundaryRecord(
            digest=self._history.running_hash(seed, state.frontier),
            frontier_group=state.frontier,
            rendered_groups=len(self._history.rendered),
            segment_tokens=sizes[0],
            summary_tokens=sizes[1],
            nodes=tuple(shown.node for shown in state.nodes),
            elided=tuple(self._history.portable(index, keep) for index, keep in sorted(state.elided.items())),
            newest_user=state.newest_user,
            created=time.time(),
        )

    async def adopted(self, record: BoundaryRecord) -> ViewState | None:
        """The state that a record stands for, without a provider call; a text that is gone becomes a digest."""
        history = self._history
        if record.frontier_group > len(history.rendered):
            return None
        tally = Tally()
        shown: list[ShownNode] = []
        for node in record.nodes:
            summary = await self._texts.get(node, self._addresses, None, tally)
            shown.append(self._show(node, summary))
        shown = self._share_rules(shown, rules_room(record.summary_tokens, 0))
        newest = record.newest_user
        return ViewState(
            nodes=tuple(shown),
            frontier=record.frontier_group,
            frontier_row=history.row_after(record.frontier_group, len(history) - self._config.keep_recent),
            elided=history.from_portable(record.elided),
            newest_user=newest if newest is not None and newest in history.users else None,
            boundary_rows=history.row_of(record.rendered_groups),
            boundaries=1,
        )


def _post(
    rows: int,
    used: int,
    saved: int = 0,
    segments: int = 0,
    merged: int = 0,
    cached: int = 0,
    digests: int = 0,
    *,
    waited: float,
) -> dict[str, int]:
    return {
        "message_count": rows,
        "tokens": used,
        "token_count": used,
        "tokens_saved": saved,
        "segments": segments,
        "merged": merged,
        "from_cache": cached,
        "digests": digests,
        "wait_ms": round(waited * 1000),
    }
