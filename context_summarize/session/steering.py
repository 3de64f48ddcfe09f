"""Steering: what a user does between requests: compacts, previews, undoes, pins rows, and asks for figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import filterfalse

from context_summarize.core.cut import Cut
from context_summarize.core.draft import Reason
from context_summarize.core.entries import Entry
from context_summarize.core.log import Log
from context_summarize.core.nodes import with_children
from context_summarize.core.plan import plan
from context_summarize.core.view import View, nodes_of
from context_summarize.errors import SteeringError
from context_summarize.messages.rows import SYSTEM_ROLES
from context_summarize.session.decide import decide
from context_summarize.session.incoming import Incoming
from context_summarize.session.request import Requests
from context_summarize.session.request_limits import RequestLimits
from context_summarize.session.state import Session
from context_summarize.session.telling import Announcement, Change, Telling
from context_summarize.summaries.services import Parts, Statistics

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
    """The thread that the view would show after the summaries; None = none."""


class Steering:
    """The part of a manager that serves hosts and users between requests."""

    def __init__(self, session: Session, telling: Telling, now: Callable[[], float]) -> None:
        self._session, self._telling = session, telling
        self._requests, self._incoming = Requests(session, telling), Incoming(session, now)

    async def compact(self, focus: str | None = None) -> int:
        """Makes a compaction now, down to `keep_recent`, with the last request's provider and budget.

        Args:
            focus: the subject that the summary of the newest summarised part should keep above all.

        Returns:
            Tokens saved: `get_token_count()` before minus after.

        Raises:
            TypeError: `focus` is no text.
        """
        if focus is not None and not isinstance(focus, str):
            raise TypeError(f"focus must be text that says what to keep, got {type(focus).__name__}")
        await self._incoming.ready()
        return await self._requests.compact(focus)

    async def undo(self) -> int:
        """Takes the last compaction back without a call; returns the tokens by which the request grows.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit; nothing has changed.
        """
        session = self._session
        limits = await self._limits()
        while True:
            log, cut = session.log, session.cut
            if not cut.rows:
                raise SteeringError("there is no compaction to take back; undo works after one has been made")
            earlier = session.cuts[-2] if len(session.cuts) > 1 else await session.saved.before(log, cut)
            await session.texts.look_up(nodes_of(log, earlier))
            async with session.turn:
                if session.log is log and session.cut is cut:
                    grown = await self._take_back(limits, earlier)
                    break
        await session.saved.flush()
        await session.services.outbox.flush()
        return grown

    async def _take_back(self, limits: RequestLimits, earlier: Cut) -> int:
        session = self._session
        before = await session.shown()
        back = replace(earlier, changed_at=session.log.rendered_rows, pins=session.cut.pins)
        back, after = await session.prepared(back)
        if (tokens := limits.used(after.tokens)) > limits.budget:
            raise SteeringError(
                f"the last compaction is not taken back: the request would hold {tokens:,} tokens, and the "
                f"budget is {limits.budget:,}; a larger window makes room for it"
            )
        change = Change(before=before, after=after, rows=len(session.log))
        session.take_back(back)
        return -self._telling.made(change, limits, Announcement(session.services.outbox))

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keeps the rows of these messages verbatim from the next compaction on; returns all pinned numbers.

        Raises:
            TypeError: `messages` is no number and no collection of them.
            SteeringError: a number has no message, or the pinned rows take more than a tenth of the base.
        """
        limits, session = await self._limits(), self._session
        async with session.taken():
            log = session.log
            pins = {*session.cut.pins, *(_group_of(log, number) for number in _numbers(messages))}
            _check_room(log, pins, limits.own.base)
            session.pin(tuple(sorted(pins)))
        return await self._pinned(log, pins)

    async def unpin(self, messages: int | Iterable[int] | None = None) -> tuple[int, ...]:
        """Removes the pins of these messages, or all pins; returns the numbers that are still pinned.

        Raises:
            TypeError, SteeringError: as `pin`, except for the size.
        """
        await self._limits()
        session = self._session
        async with session.taken():
            log, pins = session.log, {*session.cut.pins}
            gone = pins if messages is None else {_group_of(log, number) for number in _numbers(messages)}
            session.pin(tuple(sorted(pins - gone)))
        return await self._pinned(log, pins - gone)

    async def _pinned(self, log: Log, pins: Iterable[int]) -> tuple[int, ...]:
        """Returns the messages of these groups once the pins are saved. A store may be slow: this holds no turn."""
        await self._session.saved.flush()
        ranges = (log.message_range(at, at + 1) for at in sorted(pins))
        return tuple(number for first, last in ranges for number in range(first, last + 1))

    async def _limits(self) -> RequestLimits:
        """Returns the limits of the last request, for a session that has read its file and taken up its saved cut."""
        await self._incoming.ready()
        limits = await self._session.host.limits(self._session.host.last)
        await self._session.resume()
        return limits

    async def show(self, summary: int) -> str:
        """Returns a summary in full, as the request shows it; `summary` is its place, counted from 1.

        Raises:
            TypeError: `summary` is no whole number.
            SteeringError: the request has no such summary.
        """
        if type(summary) is not int:
            raise TypeError(f"summary must be a whole number, 1 for the oldest summary; got {summary!r}")
        await self._limits()
        shown = await self._session.shown()
        texts = [str(entry.row["content"]) for entry in shown.top if "level" in (entry.row.get("metadata") or {})]
        if not 1 <= summary <= len(texts):
            there = f"the request shows summaries 1 to {len(texts)}" if texts else "the request shows no summary yet"
            raise SteeringError(f"there is no summary {summary}; {there}")
        return texts[summary - 1]

    async def statistics(self) -> Statistics:
        """Returns the parts of the request, and what this session's summaries have taken so far."""
        await self._incoming.ready()
        session, host, totals = self._session, self._session.host, self._session.services.totals
        tokens, served = await session.tokens(), host.served
        view = session.view()
        return replace(
            totals,
            messages=len(session.log),
            view_tokens=tokens,
            parts=_parts(session, view),
            budget=served.budget if served and totals.requests else None,
            summaries=len(view.texts),
            fallbacks=sum(text.fallback for text in view.texts.values()),
        )

    async def preview(self) -> Preview:
        """Returns the effect that `compact()` would have now. Makes no compaction and calls no provider."""
        session, reason, limits = self._session, await self._due_reason(), await self._limits()
        shown = await session.shown()
        await session.cut_parts(limits)
        given = session.plan_input(shown, limits)
        while True:  # each plan uses texts that the store had for the plan before it
            made = plan(given, "manual")
            await session.texts.look_up(made.missing)
            if not any(map(session.texts.text_of, made.missing)):
                break
        cut, log, found = made.cut, session.log, await session.thread_of(session.log, made.cut)
        after = shown.tokens - made.freed
        if not made.missing:
            after = session.view(cut, found).tokens
        if made.freed <= 0 or not (made.missing or after < shown.tokens):  # no compaction would be made
            cut, after, made = session.cut, shown.tokens, replace(made, segments=0, merged=0, missing=())
            found = await session.thread_of(log, cut)
        unmade = {node.key for node in with_children(made.missing) if session.texts.text_of(node) is None}
        return Preview(
            reason=reason,
            before_tokens=limits.used(shown.tokens),
            after_tokens=limits.used(after),
            budget=limits.budget,
            segments=made.segments,
            merged=made.merged,
            messages=log.message_range(session.cut.groups, cut.groups) if cut.groups > session.cut.groups else None,
            calls=len(unmade),
            notes=found.text or None,
        )

    async def _due_reason(self) -> Reason | None:
        """Returns the reason why the next request would make a compaction, if it would. Starts nothing."""
        session, limits = self._session, await self._limits()
        shown = await session.shown()
        facts = replace(self._requests.facts(shown, limits)[0], defer_below=0)
        if facts.reason is None:
            return None
        await session.cut_parts(limits)
        given = session.plan_input(shown, limits)
        whole, ready = plan(given, facts.reason), plan(given, facts.reason, known_only=True)
        step, _ = decide(facts, limits.own, whole, ready)
        return None if step == "go on" else facts.reason


def _parts(session: Session, shown: View) -> Parts:
    """Returns the parts of the request with this view."""
    correct = session.host.meter.correct

    def tokens(entries: Iterable[Entry], more: int = 0) -> int:
        return correct(more + sum(entry.tokens for entry in entries)) - correct(0)

    def is_system(entry: Entry) -> bool:
        return entry.row["role"] in SYSTEM_ROLES

    top = [entry for entry in shown.top if entry.origin is not None]
    after = (*shown.newest, *shown.verbatim, *shown.open)
    return Parts(
        system=tokens(filter(is_system, (*top, *after)), session.host.system.tokens),
        tools=correct(0) if len(session.log) else 0,
        summaries=tokens(entry for entry in shown.top if entry.origin is None),
        thread=tokens([shown.thread] if shown.thread else []),
        before=tokens(filterfalse(is_system, top)),
        after=tokens(filterfalse(is_system, after), session.held[2]),
    )


def _check_room(log: Log, pins: Iterable[int], base: int) -> None:
    tokens = sum(row.tokens for at in pins for row in log.entries(log.rendered_group(at)))
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
