"""Asks the provider for one summary: request, validation, a second try, and pieces where the input is too large."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from context_summarize.background import in_thread
from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.redaction import build_redactor
from context_summarize.summaries.answer import Answer
from context_summarize.summaries.breaker import Open
from context_summarize.summaries.budget import CallBudget
from context_summarize.summaries.caller import (
    TOTAL_DEADLINE,
    Caller,
    TooLargeError,
    TooLongAnswerError,
    own_call,
)
from context_summarize.summaries.failures import unavailable
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.pieces import KeptPieces, pieces_of
from context_summarize.summaries.prompts import PromptTemplate
from context_summarize.summaries.request import input_limit, instructions_of, summary_request
from context_summarize.summaries.services import Services
from context_summarize.summaries.usage import Run
from context_summarize.summaries.validation import REASONS, AnswerJudge, Judged, Source
from context_summarize.transcript.escaping import cut_middle
from context_summarize.transcript.fences import numbered

logger = logging.getLogger(__name__)

__all__ = ["TOTAL_DEADLINE", "Summarizer", "own_call"]

_FEW_PIECES = 4
"""Inputs of more pieces are read one after the other: together they would use up the calls that may be wasted."""
_LOWERINGS = 4
"""Times that one answer is asked for in fewer tokens after the provider has refused the length."""


class _Refused(Exception):
    """Validation refused the answer."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class _Work:
    """One job, who is asked, and what it has used up."""

    job: Job
    target: Target
    run: Run
    caller: Caller


class Summarizer:
    """Turns jobs into summaries. Raises `SummaryUnavailable` and nothing else, cancellation aside."""

    def __init__(self, services: Services, *, now: Callable[[], float] = time.time) -> None:
        self._services = services
        self._config = services.config
        self._prompts = services.prompts
        self._count = services.count
        self._clock = services.clock
        self._now = now
        self._clean = build_redactor(services.config.redact) or str
        self._judge = AnswerJudge(self._clean, services.count)
        self._semaphore = asyncio.Semaphore(services.config.max_concurrency)
        self._budget = CallBudget(lambda: services.totals.requests)
        self._callers: dict[tuple[str, str | None], Caller] = {}
        self._pieces = KeptPieces()
        self._many_pieces = asyncio.Lock()

    def _caller(self, target: Target) -> Caller:
        at = (target.name, target.model)
        if at not in self._callers:
            self._callers[at] = Caller(target.name, self._services, self._budget)
        return self._callers[at]

    def is_paused(self, target: Target) -> bool:
        """True while this provider is not to be asked: it has failed too often."""
        return self._caller(target).is_paused

    def answered_elsewhere(self, provider: str) -> None:
        """The host's own request was answered by the provider of this name: its outage, if any, is over."""
        for (name, _), caller in self._callers.items():
            if name == provider:
                caller.breaker.answered_elsewhere()

    def forget_failures(self) -> None:
        """Forget what providers failed at; what they have shown of themselves is kept."""
        for caller in self._callers.values():
            caller.forget_failures()

    async def make(self, job: Job, target: Target) -> Summary:
        """Ask for one summary.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
        """
        async with self._semaphore:
            # The deadline is for asking; waiting for a turn is not the provider's fault.
            work = _Work(job, target, Run(self._clock()), self._caller(target))
            if self._config.summary_provider is None and self._config.summary_model is None:
                work.caller.allowance.learn(reasons=job.reasons)
            try:
                text = await self._text(work)
            except SummaryUnavailable:
                raise
            except Exception as error:
                raise self._unavailable(error, work) from error
        summary = self._summary(job, target, work.run, text)
        self._budget.stored(work.run.pieces)
        self._pieces.drop(job.key)
        return summary

    def _unavailable(self, error: Exception, work: _Work) -> SummaryUnavailable:
        """The error as this package reports it; what it means for the breaker and the budget is noted."""
        attempts, breaker = work.run.attempts, work.caller.breaker
        if isinstance(error, _Refused):
            # A provider that answers nothing usable, time after time, is as good as down.
            breaker.failed()
            text = f"the answer is no summary: {REASONS.get(error.kind, error.kind)}"
            return SummaryUnavailable(text, kind=error.kind, attempts=attempts, refused=True)
        if isinstance(error, TooLargeError):
            breaker.failed()
            return SummaryUnavailable(self._clean(str(error))[:500], kind="too_large", attempts=attempts)
        if isinstance(error, TooLongAnswerError):
            return SummaryUnavailable(self._clean(str(error))[:500], kind="invalid_request", attempts=attempts)
        if isinstance(error, Open):
            return SummaryUnavailable(str(error), kind="breaker_open", attempts=attempts, retry_in_s=error.retry_in_s)
        return unavailable(error, attempts, breaker.retry_in_s, self._clean)

    def _summary(self, job: Job, target: Target, run: Run, text: str) -> Summary:
        return Summary(
            key=job.key,
            level=job.level,
            text=text,
            tokens=self._count(text),
            source_tokens=job.source_tokens,
            provider=target.name,
            model=run.model or target.model,
            usage={"input_tokens": run.input_tokens, "output_tokens": run.output_tokens, "attempts": run.attempts},
            cost_usd=None if run.cost is None else f"{run.cost:f}",
            created=self._now(),
        )

    # --- whole or in pieces -----------------------------------------------------------------------------------------

    async def _text(self, work: _Work) -> str:
        job = work.job
        size = self._count(job.text) if job.level else job.source_tokens
        allowance = work.caller.allowance
        first = allowance.room(job.summary_tokens, work.target)
        limit = input_limit(work.target.window, allowance.room(job.summary_tokens, work.target, first))
        if limit is not None and size > limit:
            return await self._in_pieces(work, limit)
        try:
            return await self._ask(work, Source(job.text, size, self._template(job), len(job.parts)))
        except TooLargeError:
            # The window is not known, or smaller than its provider says.
            return await self._in_pieces(work, max(128, size * 5 // 8))

    async def _in_pieces(self, work: _Work, limit: int) -> str:
        """Summarise pieces one after the other, then join their texts by one merge call.

        Answers to pieces are kept until the summary is made, so that the next attempt goes on where this one stops.
        """
        pieces = await in_thread(sum(map(len, work.job.parts)), pieces_of, work.job.parts, limit, self._count)
        if len(pieces) <= _FEW_PIECES:
            texts = await self._answers(work, pieces)
        else:
            waiting = self._clock()
            async with self._many_pieces:
                work.run.started += self._clock() - waiting  # no time of its own passes while it waits for its turn
                texts = await self._answers(work, pieces)
        if len(texts) == 1:
            return texts[0]
        joined = numbered(texts)
        return await self._ask(work, Source(joined, self._count(joined), self._prompts.merge, len(texts)))

    async def _answers(self, work: _Work, pieces: Sequence[str]) -> list[str]:
        key, run, texts = work.job.key, work.run, []
        run.is_piece, run.pieces = True, 0
        try:
            for piece in pieces:
                text = self._pieces.find(key, piece)
                if text is None:
                    text = await self._piece(work, piece)
                    self._pieces.keep(key, piece, text)
                run.pieces += 1
                texts.append(text)
        finally:
            run.is_piece = False
        return texts

    async def _piece(self, work: _Work, piece: str) -> str:
        """One piece; when it is still too large for the provider, its head and tail, a count in between."""
        try:
            return await self._ask(work, await self._part(work.job, piece))
        except TooLargeError:
            half = cut_middle(piece, len(piece.encode("utf-8", "surrogatepass")) // 3)
            return await self._ask(work, await self._part(work.job, half))

    async def _part(self, job: Job, text: str) -> Source:
        tokens = await in_thread(len(text), self._count, text)
        return Source(text, tokens, self._template(job), len(job.parts))

    def _template(self, job: Job) -> PromptTemplate:
        return self._prompts.merge if job.level else self._prompts.segment

    # --- one question -----------------------------------------------------------------------------------------------

    async def _ask(self, work: _Work, source: Source) -> str:
        """Ask once, and once more with more room when the answer is refused.

        A first answer that was cut off, and may stand as far as it goes, stands if the second one is none or no better.

        Raises:
            TooLargeError: the provider refused the size of the input.
            _Refused: validation refused both answers.
        """
        room, first = await self._asked(work, source, 0)
        if first.kind is None:
            return first.text
        self._note(work, first, room)
        if first.kind == "cut_off" and work.caller.allowance.room(work.job.summary_tokens, work.target, room) <= room:
            raise _Refused(first.kind)  # the same room gives the same answer
        try:
            room, second = await self._asked(work, source, room)
        except Exception:
            if first.is_cut:
                return first.text
            raise
        if second.kind is None:
            if first.kind == "cut_off":
                work.caller.allowance.asked_again(first, second)
            return second.text
        self._note(work, second, room)
        if first.is_cut:
            return first.text
        raise _Refused(second.kind)

    def _note(self, work: _Work, judged: Judged, room: int) -> None:
        logger.info("summary refused: key %s, %s, attempt %d", work.job.key[:12], judged.kind, work.run.attempts)
        if judged.kind == "cut_off":
            work.caller.allowance.cut_off(judged.tokens, room)

    async def _asked(self, work: _Work, source: Source, before: int) -> tuple[int, Judged]:
        """One answer, in fewer tokens where the provider refuses the length; with the room that it had."""
        allowance, job = work.caller.allowance, work.job
        instructions = instructions_of(job, source.template, source.text, source.count)
        lowered = 0
        while True:
            room = allowance.room(job.summary_tokens, work.target, before)
            is_last = before > 0 or allowance.rambles
            is_last = is_last or allowance.room(job.summary_tokens, work.target, room) <= room
            request = summary_request(job, source.text, instructions, work.target, room)

            def judge(answer: Answer, is_last: bool = is_last) -> Judged:
                least = job.summary_tokens // 2
                return self._judge(answer, source, instructions, least, takes_cut=is_last)

            try:
                return room, await work.caller.ask(request, work.target, work.run, judge)
            except TooLongAnswerError as error:
                lowered += 1
                if lowered > _LOWERINGS or not allowance.lower(room, str(error)):
                    raise
