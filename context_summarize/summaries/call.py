"""One summary by the provider: what it is asked, again where that may help, within bounds of time and of calls."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import tenacity

from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.redaction import build_redactor
from context_summarize.summaries.answer import Answer, read_answer
from context_summarize.summaries.breaker import Breaker, LostCalls, Open
from context_summarize.summaries.checks import AnswerRefusedError, Checks
from context_summarize.summaries.failures import (
    InVain,
    is_permanent,
    is_retryable,
    is_too_large,
    unavailable,
    wait_seconds,
)
from context_summarize.summaries.foreign import error_text, within
from context_summarize.summaries.jobs import Job, Target, with_sizes
from context_summarize.summaries.request import (
    answer_room,
    call_options,
    input_limit,
    refused_parts,
    summary_request,
)
from context_summarize.summaries.services import Services
from context_summarize.transcript.fences import fence_of

logger = logging.getLogger(__name__)

TOTAL_DEADLINE = 240.0
"""Seconds that all attempts for one key may take together; two calls may always take their whole time."""
MOST_LINGERING = 8
"""Calls that ignore their cancellation; while so many go on, no further one is made."""
_ATTEMPTS = 3
"""Calls for one summary, where the provider's errors may pass."""
_MOST_CUTS = 3
"""Times that an input is cut to half after the provider has refused its size."""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events are told from the host's."""


class InputRefusedError(InVain):
    """The provider refused the size of the input."""

    kind = "too_large"


class PartRefusedError(InVain):
    """The provider refused a hint or a length, which is left out from now on: the call may be made again at once."""

    kind = "invalid_request"


class _Endpoint:
    """One provider and model, as they have shown themselves in this session."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.breaker = Breaker(name, clock)
        self.left_out: frozenset[str] = frozenset()
        """What requests to it leave out, because it has refused it."""
        self.lingering: set[asyncio.Task[Any]] = set()


@dataclass(slots=True)
class _Run:
    """The attempts for one key."""

    target: Target
    endpoint: _Endpoint
    started: float
    attempts: int = 0
    answers: list[Answer] = field(default_factory=list)
    """Those that were no summary have been paid for as well."""
    is_second: bool = False
    """True after an answer that was no summary."""


class Summarizer:
    """Turns jobs into summaries. Raises `SummaryUnavailable` and nothing else, cancellation aside."""

    def __init__(self, services: Services, *, now: Callable[[], float] = time.time) -> None:
        self._services = services
        self._config = services.config
        self._clock = services.clock
        self._now = now
        self._clean = build_redactor(services.config.redact) or str
        self._checks = Checks(self._clean, services.count)
        self._lost = LostCalls(lambda: services.totals.requests)
        self._endpoints: dict[tuple[str, str | None], _Endpoint] = {}

    def _endpoint(self, target: Target) -> _Endpoint:
        at = (target.name, target.model)
        if at not in self._endpoints:
            self._endpoints[at] = _Endpoint(target.name, self._clock)
        return self._endpoints[at]

    def is_paused(self, target: Target) -> bool:
        """True while this provider is not to be asked."""
        endpoint = self._endpoint(target)
        deaf = len(endpoint.lingering) >= MOST_LINGERING
        return bool(endpoint.breaker.retry_in_s) or deaf or self._lost.is_spent

    def answered_elsewhere(self, provider: str) -> None:
        """The host's own request was answered by the provider of this name: its outage, if any, is over."""
        for (name, _), endpoint in self._endpoints.items():
            if name == provider:
                endpoint.breaker.answered_elsewhere()

    def forget_failures(self) -> None:
        """Begin with closed breakers; lost calls stay counted, and what providers refuse is left out."""
        for (name, _), endpoint in self._endpoints.items():
            endpoint.breaker = Breaker(name, self._clock)

    async def make(self, job: Job, target: Target) -> Summary:
        """Ask for one summary.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
        """
        run = _Run(target, self._endpoint(target), self._clock())
        try:
            text = await self._text(job, run)
        except SummaryUnavailable:
            raise
        except Exception as error:
            raise self._unavailable(error, run) from error
        return self._summary(job, run, text)

    def _summary(self, job: Job, run: _Run, text: str) -> Summary:
        costs = [answer.cost for answer in run.answers if answer.cost is not None]
        return Summary(
            key=job.key,
            level=job.level,
            text=text,
            tokens=self._services.count(text),
            source_tokens=job.source_tokens,
            provider=run.target.name,
            model=next((answer.model for answer in reversed(run.answers) if answer.model), run.target.model),
            usage={
                "input_tokens": sum(answer.input_tokens for answer in run.answers),
                "output_tokens": sum(answer.output_tokens for answer in run.answers),
                "attempts": run.attempts,
            },
            cost_usd=f"{sum(costs):f}" if costs else None,
            created=self._now(),
        )

    async def _text(self, job: Job, run: _Run) -> str:
        """The text of a summary. What is too large is cut in its middle; an answer that is none is asked for again."""
        limit, cuts = input_limit(job.summary_tokens, run.target), 0
        shown = job if limit is None else job.cut_to(limit)
        while True:
            retrying = tenacity.AsyncRetrying(
                retry=tenacity.retry_if_exception(lambda error: is_retryable(error) or _is_part(error)),
                wait=lambda state: 0.0 if _is_part(_raised(state)) else wait_seconds(state),
                stop=lambda state: self._is_last(state, run),
                sleep=self._services.sleep,
                reraise=True,
            )
            try:
                return with_sizes(await retrying(self._call, shown, run), shown)
            except InputRefusedError:
                cuts += 1
                if cuts > _MOST_CUTS:
                    raise
                shown = shown.cut_to(shown.source_tokens // 2)
            except AnswerRefusedError as error:
                logger.info("summary refused: key %s, %s, attempt %d", job.key[:12], error.kind, run.attempts)
                if run.is_second:
                    raise
                run.is_second = True

    def _is_last(self, state: tenacity.RetryCallState, run: _Run) -> bool:
        if run.endpoint.breaker.retry_in_s:
            return True
        if _is_part(_raised(state)):
            return False
        return state.attempt_number >= _ATTEMPTS or wait_seconds(state) >= self._seconds_left(run)

    def _seconds_left(self, run: _Run) -> float:
        most = max(TOTAL_DEADLINE, 2 * self._config.call_seconds)
        return most - (self._clock() - run.started)

    async def _call(self, job: Job, run: _Run) -> str:
        """Make one call; the summary that it brings.

        Raises:
            Open: no call is allowed now.
            SummaryUnavailable: no time is left.
            Exception: what the provider raised, and what its answer or its refusal was judged to be.
        """
        endpoint, left_out = run.endpoint, run.endpoint.left_out
        async with endpoint.breaker.turn():
            seconds = min(self._seconds_left(run), self._config.call_seconds)
            if seconds <= 0:
                raise SummaryUnavailable("no time left", kind="timeout", attempts=run.attempts)
            if len(endpoint.lingering) >= MOST_LINGERING:
                raise Open(None, f"no further calls: {MOST_LINGERING} calls ignore their cancellation")
            call = self._lost.take()
            try:
                text = await self._asked(job, run, left_out, seconds)
            except AnswerRefusedError:
                raise
            except Exception as error:
                parts = refused_parts(error) - left_out
                if not parts and is_too_large(error):
                    raise InputRefusedError(error_text(error)) from error  # a failure only if no smaller one is taken
                endpoint.breaker.failed(permanent=is_permanent(error))
                if parts:
                    endpoint.left_out |= parts
                    raise PartRefusedError(error_text(error)) from error
                raise
            endpoint.breaker.succeeded()
            self._lost.used(call)
            return text

    async def _asked(self, job: Job, run: _Run, left_out: frozenset[str], seconds: float) -> str:
        prompts, target = self._services.prompts, run.target
        template = prompts.merge if job.level else prompts.segment
        words = str(max(20, job.summary_tokens * 3 // 4))
        instructions = template.fill(words=words, fence=fence_of(job.text), count=str(job.count))
        room = answer_room(job.summary_tokens, target, is_second=run.is_second)
        request = summary_request(job, instructions, target, room, left_out)

        async def complete() -> Any:
            own_call.set(True)  # in the task of this call, and of nothing else
            return await target.provider.complete(request, **call_options(target, left_out))

        run.attempts += 1
        self._services.totals.calls += 1
        endpoint = run.endpoint
        answer = read_answer(await within(complete(), seconds, endpoint.lingering, "context-summarize:call"))
        run.answers.append(answer)
        self._services.totals.answered(answer)
        return self._checks.summary_in(answer, job, instructions, is_last=run.is_second)

    def _unavailable(self, error: Exception, run: _Run) -> SummaryUnavailable:
        """The error as this package reports it; what it means for the breaker is noted."""
        breaker = run.endpoint.breaker
        if not isinstance(error, InVain):
            return unavailable(error, run.attempts, breaker.retry_in_s, self._clean)
        refused = isinstance(error, AnswerRefusedError)
        if refused or isinstance(error, InputRefusedError):
            breaker.failed()  # a provider that answers nothing usable, time after time, is as good as down
        told = self._clean(str(error))[:500]
        return SummaryUnavailable(
            told, kind=error.kind, attempts=run.attempts, retry_in_s=error.retry_in_s, refused=refused
        )


def _raised(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _is_part(error: BaseException | None) -> bool:
    return isinstance(error, PartRefusedError)
