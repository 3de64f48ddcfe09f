"""Steering: the last compaction is taken back, and rows are pinned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.nodes import leaves_of, next_index, regular_frontier
from context_summarize.core.view import View
from context_summarize.core.view_state import ViewState
from context_summarize.errors import SteeringError
from context_summarize.session.announcing import Announcer, Made
from context_summarize.session.conversation import Conversation, with_view
from context_summarize.session.limits import RequestLimits
from context_summarize.session.resume import Resumption
from context_summarize.summaries.services import Services
from context_summarize.summaries.tasks import SummaryTasks

T_co = TypeVar("T_co", covariant=True)

_MOST_PINNED = 0.1
"""Share of the budget that all pinned rows together may take."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T_co]):
    """What a user's wish makes of a conversation."""

    chat: Conversation
    result: T_co
    done: Callable[[], None] = lambda: None
    """Called once the conversation has been swapped."""


Act: TypeAlias = Callable[[RequestLimits, Conversation], Awaitable[Change[T_co]]]
"""A user's wish: it changes nothing by itself, and raises `SteeringError` where it is refused."""


def compact_from(chat: Conversation, config: Config, budget: int) -> float:
    """Tokens of the request at which a compaction is due; later once the last one has been taken back."""
    usual, held_at = config.compact_threshold * budget, chat.steered.held_at
    return usual if held_at is None else max(usual, held_at + config.min_fold * budget)


def is_held(chat: Conversation, config: Config, budget: int, used: int) -> bool:
    """True while a compaction that was taken back holds back the next one; `used`: tokens of the request."""
    return chat.steered.held_at is not None and used < compact_from(chat, config, budget)


def compacted(chat: Conversation, view: ViewState, record_hash: str) -> Conversation:
    """The conversation with the view of a compaction, whose record has this hash."""
    undone = tuple(hash_ for hash_ in chat.steered.undone if hash_ != record_hash)
    return replace(chat, view=view, earlier=chat.view, steered=replace(chat.steered, undone=undone, held_at=None))


class Steering:
    """The wishes of a user about the view."""

    def __init__(self, services: Services, tasks: SummaryTasks, announcer: Announcer, resumption: Resumption) -> None:
        self._services = services
        self._tasks = tasks
        self._announcer = announcer
        self._resumption = resumption

    # --- undo -------------------------------------------------------------------------------------------------------

    async def undone(self, limits: RequestLimits, chat: Conversation) -> Change[int]:
        """Go back to the view before the last compaction; the tokens that the request has grown by.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit.
        """
        if not chat.view.compactions:
            raise SteeringError("there is no compaction to take back; undo works after one has been made")
        earlier = chat.earlier or await self._resumption.earlier(chat, limits.own.own_budget) or ViewState()
        # A provider that refers to earlier answers by id has begun a new chain with the compaction.
        view = replace(earlier, rows_at_compaction=len(chat.history))
        count = self._services.count
        before = View(chat.history, chat.view, chat.groups, count)
        back = with_view(chat, view, count, limits.system_prompt is not None)
        after = View(chat.history, view, back.groups, count)
        used, grown = limits.used(before.tokens()), limits.used(after.tokens())
        if grown > limits.budget:
            raise SteeringError(
                f"the request before the last compaction takes {grown:,} tokens now, the budget is {limits.budget:,}; "
                "nothing is taken back. A larger window makes room for it"
            )
        steered = replace(chat.steered, undone=self._resumption.undone(chat, view), held_at=grown)
        told = _told(limits, before, after, len(chat.history))

        def done() -> None:
            _cut_again(chat, view, self._services.config.fan_in)
            self._tasks.compacted(view.nodes)
            self._announcer.made(told)

        return Change(replace(back, earlier=None, steered=steered), grown - used, done)

    # --- pins -------------------------------------------------------------------------------------------------------

    def pinned(self, messages: int | Iterable[int]) -> Act[tuple[int, ...]]:
        """Keep the rows of these messages verbatim from the next compaction on; the numbers of all that are pinned.

        Raises:
            SteeringError: a number names no message, or they take more than a tenth of the budget.
        """

        async def act(limits: RequestLimits, chat: Conversation) -> Change[tuple[int, ...]]:
            history = chat.history
            pins = chat.steered.pins | {_group_of(history, number) for number in _numbers(messages)}
            tokens = sum(chat.groups.pinned(history.rendered_group(at)).tokens for at in pins)
            most = int(_MOST_PINNED * limits.own.own_budget)
            if tokens > most:
                raise SteeringError(
                    f"the pinned messages would take {tokens:,} tokens together, at most {most:,} may be pinned "
                    f"({_MOST_PINNED:.0%} of the budget); pin fewer of them, or unpin others first"
                )
            return _with_pins(chat, pins)

        return act

    def unpinned(self, messages: int | Iterable[int] | None) -> Act[tuple[int, ...]]:
        """Let go of the pins of these messages, or of all; the numbers of those that are still pinned.

        Raises:
            SteeringError: a number names no message.
        """

        async def act(limits: RequestLimits, chat: Conversation) -> Change[tuple[int, ...]]:
            del limits
            if messages is None:
                return _with_pins(chat, frozenset())
            gone = {_group_of(chat.history, number) for number in _numbers(messages)}
            return _with_pins(chat, chat.steered.pins - gone)

        return act


def _told(limits: RequestLimits, before: View, after: View, history_rows: int) -> Made:
    """What the events of a compaction that is taken back say."""
    return Made(
        reason="undo",
        budget=limits.budget,
        history_rows=history_rows,
        before_tokens=limits.used(before.tokens()),
        after_tokens=limits.used(after.tokens()),
        before_rows=len(before),
        after_rows=len(after),
        segments=0,
        merged=0,
        from_cache=0,
        fallbacks=sum(item.summary.fallback for item in after.state.nodes),
        waited=0.0,
        rung=0,
        new=[],
        undo=True,
    )


def _cut_again(chat: Conversation, view: ViewState, fan_in: int) -> None:
    """Have segments again for what the earlier view shows verbatim, with the cuts of what was taken back."""
    nodes = [item.node for item in view.nodes]
    regular, builder = regular_frontier(nodes, view.frontier), chat.builder
    if builder.segment_sizes is None or builder.first_group <= regular:
        return
    shown = [item.node for item in chat.view.nodes]
    cut = [leaf for leaf in leaves_of(shown) if leaf.first_group >= regular and not leaf.is_rest]
    cut += builder.ahead(regular_frontier(shown, chat.view.frontier))
    first_index = next_index(nodes, fan_in)
    builder.start(*builder.segment_sizes, first_group=regular, first_index=first_index, cut=cut)


def _with_pins(chat: Conversation, pins: frozenset[int]) -> Change[tuple[int, ...]]:
    ranges = (chat.history.message_range(at, at + 1) for at in sorted(pins))
    numbers = tuple(number for first, last in ranges for number in range(first, last + 1))
    return Change(replace(chat, steered=replace(chat.steered, pins=pins)), numbers)


def _numbers(messages: int | Iterable[int]) -> list[int]:
    found = [messages] if isinstance(messages, int) else list(messages)
    wrong = next((number for number in found if not isinstance(number, int) or isinstance(number, bool)), None)
    if wrong is not None:
        raise SteeringError(f"messages must be numbers as summaries name them, got {wrong!r}")
    return found


def _group_of(history: History, number: int) -> int:
    """The rendered group that holds the message of this number."""
    found = history.group_of_message(number)
    if found is None:
        last = history.closed_rows()
        raise SteeringError(
            f"there is no message {number} to pin; messages 1 to {last} can be pinned, "
            "and a tool call once all its results are there"
        )
    return found
