"""Steering: the last compaction is taken back, and rows are pinned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.nodes import regular_frontier
from context_summarize.core.view import View
from context_summarize.core.view_state import ViewState
from context_summarize.errors import SteeringError
from context_summarize.session.announcing import Made
from context_summarize.session.conversation import Conversation, start_segments, with_view
from context_summarize.session.limits import RequestLimits
from context_summarize.tokens.measure import Count

_MOST_PINNED = 0.1
"""Share of the budget that all pinned rows together may take."""


def compact_from(chat: Conversation, config: Config, budget: int) -> float:
    """Tokens of the request at which a compaction is due; later once the last one has been taken back."""
    usual, held_at = config.compact_threshold * budget, chat.steered.held_at
    return usual if held_at is None else max(usual, held_at + config.least_freed * budget)


def is_held(chat: Conversation, config: Config, budget: int, used: int) -> bool:
    """True while a compaction that was taken back holds back the next one; `used`: tokens of the request."""
    return chat.steered.held_at is not None and used < compact_from(chat, config, budget)


def compacted(chat: Conversation, view: ViewState, record_hash: str | None) -> Conversation:
    """The conversation with the view of a compaction, whose record has this hash."""
    undone = tuple(hash_ for hash_ in chat.steered.undone if hash_ != record_hash)
    return replace(chat, view=view, earlier=chat.view, steered=replace(chat.steered, undone=undone, held_at=None))


def taken_back(
    limits: RequestLimits, chat: Conversation, earlier: ViewState, count: Count, undone: tuple[str, ...]
) -> tuple[Conversation, Made]:
    """The conversation with the view before its last compaction, and what the events of that say.

    Args:
        undone: the hashes of the records that the session passes over from now on.

    Raises:
        SteeringError: the earlier view does not fit.
    """
    # A provider that refers to earlier answers by id has begun a new chain with the compaction.
    view = replace(earlier, rows_at_compaction=len(chat.history))
    before = View(chat.view, chat.groups)
    back = with_view(chat, view, count, limits.system_prompt is not None)
    told = _told(limits, before, View(view, back.groups), len(chat.history))
    if told.after_tokens > limits.budget:
        raise SteeringError(
            f"the request before the last compaction takes {told.after_tokens:,} tokens now, the budget is "
            f"{limits.budget:,}; nothing is taken back. A larger window makes room for it"
        )
    steered = replace(chat.steered, undone=undone, held_at=told.after_tokens)
    return replace(back, earlier=None, steered=steered), told


def pinned(chat: Conversation, messages: int | Iterable[int], own_budget: int) -> Conversation:
    """The conversation that keeps the rows of these messages verbatim from the next compaction on.

    Raises:
        SteeringError: a number names no message, or all that are pinned take more than a tenth of the budget.
    """
    pins = chat.steered.pins | {_group_of(chat.history, number) for number in _numbers(messages)}
    tokens = sum(chat.groups.shown(chat.history.rendered_group(at)).tokens for at in pins)
    most = int(_MOST_PINNED * own_budget)
    if tokens > most:
        raise SteeringError(
            f"the pinned messages would take {tokens:,} tokens together, at most {most:,} may be pinned "
            f"({_MOST_PINNED:.0%} of the budget); pin fewer of them, or unpin others first"
        )
    return replace(chat, steered=replace(chat.steered, pins=pins))


def unpinned(chat: Conversation, messages: int | Iterable[int] | None) -> Conversation:
    """The conversation without the pins of these messages, or of all.

    Raises:
        SteeringError: a number names no message.
    """
    named = None if messages is None else {_group_of(chat.history, number) for number in _numbers(messages)}
    pins = frozenset() if named is None else chat.steered.pins - named
    return replace(chat, steered=replace(chat.steered, pins=pins))


def pinned_messages(chat: Conversation) -> tuple[int, ...]:
    """The numbers of all messages that are pinned."""
    ranges = (chat.history.message_range(at, at + 1) for at in sorted(chat.steered.pins))
    return tuple(number for first, last in ranges for number in range(first, last + 1))


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
        fallbacks=sum(item.summary.fallback for item in after.state.shown),
        waited=0.0,
        rung=0,
        new=[],
        undo=True,
    )


def cut_again(chat: Conversation, fan_in: int) -> None:
    """Have segments for what an earlier view shows verbatim."""
    regular = regular_frontier(chat.view.nodes, chat.view.frontier)
    if chat.builder.segment_sizes is not None and chat.builder.first_group > regular:
        start_segments(chat, *chat.builder.segment_sizes, fan_in)


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
