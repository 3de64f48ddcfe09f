"""One summary by the provider: asks it, and again where that may help, within bounds of time and of calls."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

import tenacity

from context_summarize.background import within
from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import FAILURE, REQUEST, RESOLVE, SUMMARY, AskLater
from context_summarize.redaction import build_redactor
from context_summarize.summaries.answer import Answer, AnswerRefusedError, read_answer, summary_in
from context_summarize.summaries.failures import (
    PER_CALL,
    Allowance,
    Breaker,
    is_heard,
    is_permanent,
    kind_of,
    may_pass,
    unavailable,
    wait_seconds,
)
from context_summarize.summaries.jobs import (
    PURPOSE,
    Job,
    Target,
    answer_room,
    call_options,
    input_limit,
    summary_request,
)
from context_summarize.summaries.services import Services
from context_summarize.transcript.escaping import fence_of

logger = logging.getLogger(__name__)

LONGEST_WAIT = 120.0
"""Seconds that are waited for another attempt; a provider that asks for more is not asked again for this summary."""
_ATTEMPTS = 3
"""Calls for one request, where the provider's errors may pass."""
_SMALLEST_SHARE = 8
"""An input that the provider finds too large is cut to half, again and again, down to this part of it.

A server of 8,192 tokens behind a provider that names no window gets segments of 25,000.
"""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events are told from the host's."""


@dataclass(slots=True)
class _Endpoint:
    """One provider and model, as they have shown themselves in this session."""

    breaker: Breaker
    takes_hints: bool = True
    """False once it has refused a request with them and answered one without.

    The openai provider passes any effort on: gpt-5.5-pro refuses "low", gpt-4 every effort. It also names 128,000
    tokens of output for a model that it does not know; gpt-4-turbo allows 4,096: "max_tokens is too large".
    """


@dataclass(slots=True)
class _Run:
    """The attempts for one key."""

    target: Target
    endpoint: _Endpoint
    has_hints: bool
    may_ask: Callable[[], bool]
    """Returns True while somebody waits, so that hooks may ask the user."""
    answers: list[Answer] = field(default_factory=list)
    """Those that were no summary have been paid for as well."""
    attempts: int = 0
    is_second: bool = False
    """True after an answer that was no summary."""


class Summarizer:
    """Turns jobs into summaries. Raises `SummaryUnavailable` and nothing else, cancellation aside."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._config = services.config
        self._clean = build_redactor(services.config.redact) or str
        self._said: set[str] = set()
        """Kinds of lasting errors that have been told since the last success."""
        self._endpoints: dict[tuple[str, str | None], _Endpoint] = {}
        self._allowance = Allowance(lambda: services.totals.requests)

    def _endpoint(self, target: Target) -> _Endpoint:
        return self._endpoints.setdefault((target.name, target.model), _Endpoint(Breaker(self._services.clock)))

    def is_paused(self, target: Target) -> bool:
        """Returns True while this provider is not to be asked."""
        return self._endpoint(target).breaker.retry_in_s is not None or not self._allowance.is_left

    def answered_elsewhere(self, provider: str) -> None:
        """The host's own request was answered by the provider of this name: its outage, if any, is over."""
        for (name, _), endpoint in self._endpoints.items():
            if name == provider:
                endpoint.breaker.end_pause()

    def forget_failures(self) -> None:
        """Begins with closed breakers; lost calls stay counted, and refused hints stay left out."""
        for endpoint in self._endpoints.values():
            endpoint.breaker.succeeded()

    async def make(self, job: Job, target: Target, may_ask: Callable[[], bool] = lambda: False) -> Summary:
        """Asks for one summary; events, totals and the log are told of it.

        Args:
            may_ask: returns True while somebody waits, so that hooks may ask the user.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
            AskLater: a hook would ask the user, and nobody waits.
        """
        endpoint = self._endpoint(target)
        async with endpoint.breaker.turn():
            if self.is_paused(target):
                wait = endpoint.breaker.retry_in_s
                raise SummaryUnavailable("calls to this provider are paused", kind="breaker_open", retry_in_s=wait)
            run, started = _Run(target, endpoint, endpoint.takes_hints, may_ask), self._services.clock()
            try:
                text = await self._text(job, run)
            except AskLater:
                raise
            except Exception as error:
                # A provider that answers nothing usable, time after time, is as good as down.
                if is_heard(error):
                    endpoint.breaker.failed()
                told = unavailable(error, run.attempts, endpoint.breaker.retry_in_s, self._clean)
                self._tell_failed(job, told)
                raise told from error
            summary = self._summary(job, run, text)
        self._tell_made(summary, self._services.clock() - started)
        return summary

    def _tell_made(self, summary: Summary, seconds: float) -> None:
        self._said.clear()
        told = {
            "key": summary.key,
            "level": summary.level,
            "source_tokens": summary.source_tokens,
            "summary_tokens": summary.tokens,
            "provider": summary.provider,
            "model": summary.model,
            "duration_ms": round(seconds * 1000),
            "attempts": summary.usage["attempts"],
            "usage": {name: summary.usage[name] for name in ("input_tokens", "output_tokens")},
            "cost_usd": summary.cost_usd,
        }
        self._services.outbox.put(SUMMARY, told)

    def _tell_failed(self, job: Job, error: SummaryUnavailable) -> None:
        """Tells of each failure, of a lasting one once until a summary is made. A pause has been told of."""
        if not error.attempts and not error.permanent:
            return
        self._services.totals.failed += 1
        if error.permanent:
            if error.kind in self._said:
                return
            self._said.add(error.kind)
        log = logger.error if error.permanent else logger.warning
        told = "no summary for key %s, level %d: %s (%s); a fallback summary takes its place"
        log(told, job.key[:12], job.level, error, error.kind)
        event = {"key": job.key, "level": job.level, "kind": error.kind, "error": str(error)}
        self._services.outbox.put(FAILURE, {**event, "attempts": error.attempts, "retry_in_s": error.retry_in_s})

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
        )

    async def _text(self, job: Job, run: _Run) -> str:
        """Returns the text of a summary, and changes a request that the provider refuses or answers badly.

        A bad answer is asked for once more, with more room. Too large an input is cut. Hints are left out.
        """
        limit = input_limit(job.summary_tokens, run.target)
        shown = job if limit is None else job.cut_to(limit)
        while True:
            try:
                return await self._retried(shown, run)
            except AnswerRefusedError as error:
                logger.info("answer refused: key %s, %s, attempt %d", job.key[:12], error.kind, run.attempts)
                if run.is_second:
                    raise
                run.is_second = True
            except Exception as error:
                kind = kind_of(error)
                if kind == "too_large" and shown.source_tokens > job.source_tokens // _SMALLEST_SHARE:
                    shown = shown.cut_to(shown.source_tokens // 2)
                elif kind == "invalid_request" and run.has_hints:
                    run.has_hints = False
                else:
                    raise

    async def _retried(self, job: Job, run: _Run) -> str:
        """Makes one call, and repeats it while the provider's errors may pass and its breaker is closed."""
        breaker = run.endpoint.breaker
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(may_pass),
            wait=wait_seconds,
            stop=lambda state: (
                breaker.retry_in_s is not None
                or state.attempt_number >= _ATTEMPTS
                or wait_seconds(state) > LONGEST_WAIT
            ),
            sleep=self._services.sleep,
            reraise=True,
        )
        return await retrying(self._call, job, run)

    async def _call(self, job: Job, run: _Run) -> str:
        """Makes one call and returns the summary that it brings.

        Raises:
            SummaryUnavailable: no call is allowed now, or a hook denies it.
            AnswerRefusedError: the answer is no summary.
            Exception: what the provider raised.
        """
        if not self._allowance.is_left:
            why = "calls for summaries are paused: too many brought none that can be used"
            raise SummaryUnavailable(why, kind="breaker_open", attempts=run.attempts)
        await self._announce(run)
        self._allowance.left -= PER_CALL
        endpoint = run.endpoint
        try:
            text = await self._asked(job, run)
        except Exception as error:
            if not is_heard(error) and endpoint.breaker.failed(permanent=is_permanent(error)):
                logger.warning("provider %s failed several times in a row; calls for summaries pause", run.target.name)
            raise
        self._allowance.left += PER_CALL
        endpoint.breaker.succeeded()
        endpoint.takes_hints = run.has_hints
        return text

    async def _announce(self, run: _Run) -> None:
        """Tells hooks of a call as loop-streaming tells of its goal evaluator's, so that they can see and deny it.

        Raises:
            SummaryUnavailable: a hook denies it.
            AskLater: a hook would ask the user, and nobody waits.
        """
        target, outbox = run.target, self._services.outbox
        told = {"provider": target.name, "model": target.model}
        await outbox.emit(RESOLVE, {**told, "scope": PURPOSE, "basis": target.basis})
        announced = {**told, "iteration": 0, "purpose": PURPOSE}
        why = await outbox.denial(REQUEST, announced, run.may_ask)
        if why is not None:
            why = f"a hook denies the call: {self._clean(why)}"
            raise SummaryUnavailable(why, kind="denied", attempts=run.attempts, permanent=True)

    async def _asked(self, job: Job, run: _Run) -> str:
        prompts, target = self._services.prompts, run.target
        template = prompts.merge if job.level else prompts.segment
        words = str(max(20, job.summary_tokens * 3 // 4))
        instructions = template.fill(words=words, fence=fence_of(job.text), count=str(job.count))
        room = answer_room(job.summary_tokens, target, is_second=run.is_second) if run.has_hints else None
        request = summary_request(job, instructions, target, room)

        async def complete() -> Answer:
            own_call.set(True)  # in the task of this call, and of nothing else
            return read_answer(await target.provider.complete(request, **call_options(target)))

        run.attempts += 1
        self._services.totals.calls += 1
        answer = await within(complete, self._config.call_seconds)
        run.answers.append(answer)
        self._services.totals.answered(answer)
        count, is_last = self._services.count, run.is_second
        return summary_in(answer, job, instructions, count, clean=self._clean, is_last=is_last)
