"""Steering: between requests a user previews the next compaction, undoes the last one, and pins rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from context_summarize.core.log import Log
from context_summarize.core.nodes import View, to_make
from context_summarize.core.plan import Reason, plan
from context_summarize.core.render import render
from context_summarize.errors import SteeringError
from context_summarize.session.announcer import Change
from context_summarize.session.conversation import Conversation
from context_summarize.session.current import Current
from context_summarize.session.decide import Attempts, decide_for
from context_summarize.session.request import Requests
from context_summarize.session.request_limits import RequestLimits

_MOST_LOOKS = 8
"""A preview makes at most so many plans; each uses texts that the store had for the plan before it."""
_MOST_PINNED = 0.1
"""Share of the base (see `Limits`) that all pinned rows together may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The effect that `compact()` would have now. Tokens as the provider counts; estimated for unknown summaries."""

    reason: Reason | None
    """Why the next request would make a compaction, see `Reason`; None = it would make none."""
    before_tokens: int
    after_tokens: int
    budget: int
    segments: int
    """Segments that would be summarised."""
    merged: int
    """Merges that would be made."""
    messages: tuple[int, int] | None
    """First and last message that would be summarised, by the numbers that frames show; None = none would."""
    calls: int
    """Summaries that are not known yet: each takes a provider call, unless the store has it."""
    notes: str | None
    """The row of notes that the view would show after the summaries; None = none."""


class Steering:
    """Serves hosts and users between requests."""

    def __init__(self, current: Current, requests: Requests) -> None:
        self._current = current
        self._requests = requests

    async def undo(self) -> int:
        """Goes back to the view before the last compaction; returns the tokens by which the request grows.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit.
        """
        current = self._current
        while True:
            chat, limits = await self._steerable()
            if not chat.view.compactions:
                raise SteeringError("there is no compaction to take back; undo works after one has been made")
            earlier = chat.earlier[-1] if chat.earlier else await current.records.earlier(chat)
            if current.is_current(chat):
                break
        back = _taken_back(limits, chat, earlier)
        undone = current.records.undone(chat, earlier)
        current.summaries.compacted(back.view.shown, back.log)
        fallbacks = sum(item.summary.fallback for item in back.view.shown)
        saved = current.announcer.made(Change(fallbacks=fallbacks), limits, chat, back)
        await current.steer(replace(back, steered=replace(back.steered, undone=undone)))
        return -saved

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keeps the rows of these messages verbatim from the next compaction on; returns all pinned numbers.

        Raises:
            TypeError: `messages` is no number and no collection of them.
            SteeringError: a number has no message, or the pinned rows take more than a tenth of the base.
        """
        chat, limits = await self._steerable()
        pins = chat.steered.pins | {_group_of(chat.log, number) for number in _numbers(messages)}
        _check_room(chat, pins, limits.own.base)
        return await self._pin(chat, pins)

    async def unpin(self, messages: int | Iterable[int] | None) -> tuple[int, ...]:
        """Removes the pins of these messages, or all pins; returns the numbers that are still pinned.

        Raises:
            TypeError, SteeringError: as `pin`, except for the size.
        """
        chat, _ = await self._steerable()
        all_pins = chat.steered.pins
        named = all_pins if messages is None else {_group_of(chat.log, number) for number in _numbers(messages)}
        return await self._pin(chat, all_pins - named)

    async def _pin(self, chat: Conversation, pins: frozenset[int]) -> tuple[int, ...]:
        await self._current.steer(replace(chat, steered=replace(chat.steered, pins=pins)))
        ranges = (chat.log.message_range(at, at + 1) for at in sorted(pins))
        return tuple(number for first, last in ranges for number in range(first, last + 1))

    async def _steerable(self) -> tuple[Conversation, RequestLimits]:
        """Returns the current conversation, with its segments cut, and the limits of the last request."""
        wanted = replace(self._current.host.last, is_manual=True)
        seen = await self._requests.observe(wanted, await self._current.host.limits(wanted))
        return seen.chat, seen.limits

    async def preview(self) -> Preview:
        """Returns the effect that `compact()` would have now. Makes no compaction and calls no provider."""
        reason, summaries = await self.due_reason(), self._current.summaries
        chat, limits = await self._steerable()
        for _ in range(_MOST_LOOKS):
            made = plan(self._current.plan_input(chat, limits), "manual")
            await summaries.look_up(made.missing)
            if not any(map(summaries.text_of, made.missing)):
                break
        view, after = chat.view, made.tokens_before
        if made.freed > 0:
            view, _ = await self._requests.compactions.view(chat, made)
            after = render(chat.log, view).tokens
            if made.missing:
                after = made.tokens_after - made.notes_room + (view.notes.tokens if view.notes else 0)
        else:  # no compaction would be made
            made = replace(made, segments=0, merged=0, missing=())
        summarises = view.frontier > chat.view.frontier
        return Preview(
            reason=reason,
            before_tokens=limits.used(made.tokens_before),
            after_tokens=limits.used(after),
            budget=limits.budget,
            segments=made.segments,
            merged=made.merged,
            messages=chat.log.message_range(chat.view.frontier, view.frontier) if summarises else None,
            calls=len({node.key for node in to_make(made.missing, summaries.text_of)}),
            notes=view.notes.text if view.notes else None,
        )

    async def due_reason(self) -> Reason | None:
        """Returns the reason why the next request would make a compaction, if it would. Starts nothing."""
        wanted = self._current.host.last
        seen = await self._requests.observe(wanted, await self._current.host.limits(wanted))
        facts = self._requests.facts(seen, wanted, Attempts())
        facts = replace(facts, is_answered=False, is_ahead=False, defer_below=0)
        if facts.reason is None:
            return None
        step, _ = decide_for(facts, self._current.plan_input(seen.chat, seen.limits))
        return None if step == "go on" else facts.reason


def _taken_back(limits: RequestLimits, chat: Conversation, earlier: View) -> Conversation:
    """Returns the conversation with the view before its last compaction."""
    # All rows lose the ids by which a provider continues a chain: its newest chain holds the compacted view.
    back = chat.with_view(replace(earlier, rows_at_compaction=len(chat.log)))
    size = back.rendering().tokens
    if (tokens := limits.used(size)) > limits.budget:
        raise SteeringError(
            f"the last compaction is not taken back: the request would hold {tokens:,} tokens, and the "
            f"budget is {limits.budget:,}; a larger window makes room for it"
        )
    steered = replace(chat.steered, undone_at=size)
    return replace(back, earlier=chat.earlier[:-1], steered=steered)


def _check_room(chat: Conversation, pins: frozenset[int], base: int) -> None:
    tokens = sum(row.tokens for at in pins for row in chat.log.entries(chat.log.rendered_group(at)))
    most = int(_MOST_PINNED * base)
    if tokens > most:
        raise SteeringError(
            f"the pinned messages would take {tokens:,} tokens together, at most {most:,} may be pinned "
            f"({_MOST_PINNED:.0%} of the {base:,} that budget, system prompt and compact_threshold leave for "
            "messages); pin fewer of them, or unpin others first"
        )


def _numbers(messages: int | Iterable[int]) -> list[int]:
    if isinstance(messages, str) or not isinstance(messages, int | Iterable):
        raise TypeError(f"messages must be a number, or a list of numbers, as summaries name them; got {messages!r}")
    found = [messages] if isinstance(messages, int) else list(messages)
    if wrong := [number for number in found if not isinstance(number, int) or isinstance(number, bool)]:
        raise SteeringError(f"messages must be numbers as summaries name them, got {wrong[0]!r}")
    return found


def _group_of(log: Log, number: int) -> int:
    """Returns the rendered group that holds the message of this number."""
    found = log.group_of_message(number)
    if found is None:
        last = log.closed_rendered_rows
        there = f"there are messages 1 to {last}" if last else "there are no messages yet"
        raise SteeringError(
            f"there is no message {number} to pin or unpin; {there}, and a tool call counts once all its results are "
            "there"
        )
    return found
