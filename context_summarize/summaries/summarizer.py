"""Asks the provider for one summary: request, retries, the gate, and pieces where the input is too large."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import tenacity
from amplifier_core.message_models import ChatRequest

from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.facts.directives import format_directives
from context_summarize.facts.extraction import coverage
from context_summarize.facts.ledger import build_ledger, format_ledger, ledger_tokens
from context_summarize.redaction.redactor import build_redactor
from context_summarize.summaries.breaker import Breaker, Open
from context_summarize.summaries.failures import is_permanent, is_retryable, is_too_large, unavailable, wait_seconds
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.pieces import cut_pieces
from context_summarize.summaries.prompts import PromptTemplate
from context_summarize.summaries.request import input_limit, instructions_of, output_room, summary_request
from context_summarize.summaries.services import Services
from context_summarize.summaries.usage import Run, add_usage
from context_summarize.summaries.validation import answer_text, refusal
from context_summarize.transcript.fences import numbered
from context_summarize.transcript.marks import cut_middle

logger = logging.getLogger(__name__)

TOTAL_DEADLINE = 240.0
"""Seconds that all attempts for one key may take together."""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events are told from the host's."""


class _TooLarge(Exception):
    """The provider refused the size of the input."""


class _Refused(Exception):
    """The gate refused the answer."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


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
        self._slots = asyncio.Semaphore(services.config.max_concurrency)
        self._breakers: dict[tuple[str, str | None], Breaker] = {}

    def _breaker(self, target: Target) -> Breaker:
        at = (target.name, target.model)
        if at not in self._breakers:
            self._breakers[at] = Breaker(target.name, self._clock)
        return self._breakers[at]

    def is_paused(self, target: Target) -> bool:
        """True while this provider is not to be asked: it has failed too often."""
        return bool(self._breaker(target).retry_in_s)

    def answered_elsewhere(self, provider: str) -> None:
        """The host's own request was answered by the provider of this name: its outage, if any, is over."""
        for (name, _), breaker in self._breakers.items():
            if name == provider:
                breaker.answered_elsewhere()

    @property
    def directive_words(self) -> tuple[str, ...]:
        """Words of the prompt set that make a user's sentence a standing rule."""
        return self._prompts.directive_words

    def forget_failures(self) -> None:
        """Forget what providers failed at."""
        self._breakers.clear()

    async def make(self, job: Job, target: Target) -> Summary:
        """Ask for one summary.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
        """
        async with self._slots:
            # The deadline is for asking; waiting for a slot is not the provider's fault.
            run = Run(self._clock())
            try:
                text = await self._text(job, target, run)
            except _Refused as error:
                raise SummaryUnavailable(
                    "the answer is no summary", kind=error.kind, attempts=run.attempts, refused=True
                ) from error
            except _TooLarge as error:
                raise SummaryUnavailable(str(error), kind="too_large", attempts=run.attempts) from error
            except SummaryUnavailable:
                raise
            except Open as error:
                raise SummaryUnavailable(
                    str(error), kind="breaker_open", attempts=run.attempts, retry_in_s=error.retry_in_s
                ) from error
            except Exception as error:
                raise unavailable(error, run.attempts, self._breaker(target).retry_in_s, self._clean) from error
        return self._summary(job, target, run, text)

    def _summary(self, job: Job, target: Target, run: Run, text: str) -> Summary:
        said = f"{text}\n{format_directives(job.directives)}"
        ledger = build_ledger(job.facts, said, ledger_tokens(job.summary_tokens, job.level), self._count)
        shown = "\n\n".join(
            part for part in (text, format_directives(job.directives, text), format_ledger(ledger)) if part
        )
        return Summary(
            key=job.key,
            level=job.level,
            text=text,
            ledger=ledger,
            directives=job.directives,
            tokens=self._count(shown),
            source_tokens=job.source_tokens,
            provider=target.name,
            model=run.model or target.model,
            usage={"input_tokens": run.input_tokens, "output_tokens": run.output_tokens, "attempts": run.attempts},
            cost_usd=None if run.cost is None else f"{run.cost:f}",
            created=self._now(),
            coverage=coverage(job.facts, shown),
        )

    # --- whole or in pieces -----------------------------------------------------------------------------------------

    async def _text(self, job: Job, target: Target, run: Run) -> str:
        size = self._count(job.text) if job.level else job.source_tokens
        limit = input_limit(job.summary_tokens, target)
        if limit is not None and size > limit:
            return await self._in_pieces(job, target, run, limit)
        try:
            return await self._ask(job, job.text, self._template(job), target, run, size=size)
        except _TooLarge:
            # The window is not known, or smaller than its provider says.
            return await self._in_pieces(job, target, run, max(128, size * 5 // 8))

    async def _in_pieces(self, job: Job, target: Target, run: Run, limit: int) -> str:
        """Summarise pieces one after the other, then join their texts by one merge call."""
        texts = [await self._piece(job, piece, target, run) for piece in cut_pieces(job.parts, limit, self._count)]
        if len(texts) == 1:
            return texts[0]
        return await self._ask(job, numbered(texts), self._prompts.merge, target, run, count=len(texts))

    async def _piece(self, job: Job, piece: str, target: Target, run: Run) -> str:
        """One piece; when it is still too large for the provider, its head and tail, a count in between."""
        try:
            return await self._ask(job, piece, self._template(job), target, run)
        except _TooLarge:
            half = cut_middle(piece, len(piece.encode("utf-8", "surrogatepass")) // 3)
            return await self._ask(job, half, self._template(job), target, run)

    def _template(self, job: Job) -> PromptTemplate:
        return self._prompts.merge if job.level else self._prompts.segment

    # --- one question -----------------------------------------------------------------------------------------------

    async def _ask(
        self,
        job: Job,
        text: str,
        template: PromptTemplate,
        target: Target,
        run: Run,
        *,
        count: int | None = None,
        size: int | None = None,
    ) -> str:
        """Ask once, and once more with more room when the gate refuses the answer.

        Args:
            count: of the texts to be joined, where they are not the job's parts.
            size: tokens of `text`, where they are known.
        """
        source = self._count(text) if size is None else size
        refused = ""
        for times in (1, 2):
            instructions = instructions_of(job, template, text, count or len(job.parts))
            request = summary_request(job, text, instructions, target, output_room(job.summary_tokens, target, times))
            response = await self._call(request, target, run)
            answer = self._clean(answer_text(response))
            kind = refusal(response, answer, self._count(answer), source)
            if kind is None:
                self._breaker(target).succeeded()
                return answer
            refused = kind
            logger.info("summary refused: key %s, %s, attempt %d", job.key[:12], kind, run.attempts)
        # A provider that answers nothing usable, time after time, is as good as down.
        self._breaker(target).failed()
        raise _Refused(refused)

    async def _call(self, request: ChatRequest, target: Target, run: Run) -> Any:
        """One answer, with retries of what may be retried."""
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(is_retryable),
            wait=wait_seconds,
            stop=lambda state: self._breaker(target).is_open or self._out_of_time(state, run),
            sleep=self._services.sleep,
            reraise=True,
        )
        return await retrying(self._once, request, target, run)

    def _out_of_time(self, state: tenacity.RetryCallState, run: Run) -> bool:
        left = TOTAL_DEADLINE - (self._clock() - run.started)
        return state.attempt_number >= self._config.retry_attempts or wait_seconds(state) >= left

    async def _once(self, request: ChatRequest, target: Target, run: Run) -> Any:
        breaker = self._breaker(target)
        turn = await breaker.enter()
        try:
            left = TOTAL_DEADLINE - (self._clock() - run.started)
            if left <= 0:
                raise SummaryUnavailable("no time left", kind="timeout", attempts=run.attempts)
            response = await self._answer(request, target, run, left)
        except SummaryUnavailable:
            raise
        except Exception as error:
            if is_too_large(error):
                breaker.succeeded()  # it answers; the size is our affair
                raise _TooLarge(str(error)) from error
            breaker.failed(permanent=is_permanent(error))
            raise
        finally:
            breaker.leave(turn)
        add_usage(run, response, self._services.totals)
        return response

    async def _answer(self, request: ChatRequest, target: Target, run: Run, left: float) -> Any:
        run.attempts += 1
        self._services.totals.calls += 1
        extra = {"model": target.model} if target.model else {}
        token = own_call.set(True)
        try:
            async with asyncio.timeout(min(left, self._config.request_timeout)):
                return await target.provider.complete(request, **extra)
        finally:
            own_call.reset(token)
