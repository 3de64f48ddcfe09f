"""Gets one summary from the provider. It tries again if that may help, within limits of time and calls."""

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
    is_of_request,
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
"""Seconds before another attempt. If the provider asks for a longer wait, this summary gets no further attempt."""
_ATTEMPTS = 3
"""Calls for one request, if the provider's errors are temporary."""
_SMALLEST_SHARE = 8
"""An input that is too large for the provider is cut to half, again and again, down to one part in so many.

Behind a provider that reports no window, a server of 8,192 tokens may get segments of 25,000.
"""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events differ from the host's."""


@dataclass(slots=True)
class _Endpoint:
    """One provider and model, and what this session has learnt about them."""

    breaker: Breaker
    takes_hints: bool = True
    """False once it has refused a request with hints and answered one without.

    The openai provider passes any effort on: gpt-5.5-pro refuses "low", gpt-4 every effort. It also reports 128,000
    tokens of output for a model that it does not know; gpt-4-turbo allows 4,096: "max_tokens is too large".
    """


@dataclass(slots=True)
class _Run:
    """The attempts for one key."""

    target: Target
    endpoint: _Endpoint
    has_hints: bool
    may_ask: Callable[[], bool]
    """Returns True while a request waits, so that hooks may ask the user."""
    answers: list[Answer] = field(default_factory=list)
    """All answers, also those that were no summary: they cost tokens too."""
    attempts: int = 0
    is_second: bool = False
    """True after an answer that was no summary."""


class Summarizer:
    """Turns jobs into summaries."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._config = services.config
        self._clean = build_redactor(services.config.redact) or str
        self._said: set[str] = set()
        """Kinds of permanent errors that were reported since the last success."""
        self._endpoints: dict[tuple[str, str | None], _Endpoint] = {}
        self._allowance = Allowance(lambda: services.totals.requests)

    def _endpoint(self, target: Target) -> _Endpoint:
        return self._endpoints.setdefault((target.name, target.model), _Endpoint(Breaker(self._services.clock)))

    def is_paused(self, target: Target) -> bool:
        """Returns True while no call to this provider is allowed."""
        return self._endpoint(target).breaker.retry_in_s is not None or not self._allowance.is_left

    def answered_elsewhere(self, provider: str) -> None:
        """Ends the pause of the provider of this name, because it has answered the host's own request."""
        for (name, _), endpoint in self._endpoints.items():
            if name == provider:
                endpoint.breaker.end_pause()

    def forget_failures(self) -> None:
        """Closes all breakers. Lost calls still count, and refused hints are still left out."""
        for endpoint in self._endpoints.values():
            endpoint.breaker.succeeded()

    async def make(self, job: Job, target: Target, may_ask: Callable[[], bool] = lambda: False) -> Summary:
        """Returns one summary from the provider; reports it in events, totals and the log.

        Args:
            may_ask: returns True while a request waits, so that hooks may ask the user.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
            AskLater: a hook would ask the user, and no request waits.
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
                # Repeated useless answers open the breaker like an outage.
                if is_of_request(error):
                    endpoint.breaker.failed()
                reported = unavailable(error, run.attempts, endpoint.breaker.retry_in_s, self._clean)
                self._report_failed(job, reported)
                raise reported from error
            summary = self._summary(job, run, text)
        self._report_made(summary, self._services.clock() - started)
        return summary

    def _report_made(self, summary: Summary, seconds: float) -> None:
        self._said.clear()
        data = {
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
        self._services.outbox.put(SUMMARY, data)

    def _report_failed(self, job: Job, error: SummaryUnavailable) -> None:
        """Reports each failure; a permanent one only once until a summary is made, and no pause."""
        if not error.attempts and not error.permanent:
            return
        self._services.totals.failed += 1
        if error.permanent:
            if error.kind in self._said:
                return
            self._said.add(error.kind)
        log = logger.error if error.permanent else logger.warning
        text = "no summary for key %s, level %d: %s (%s); a fallback summary takes its place"
        log(text, job.key[:12], job.level, error, error.kind)
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
        """Returns the text of a summary. If the provider refuses a request or answers badly, it tries a changed one.

        After a bad answer, a second request gives more room. After a refusal, too large an input is cut, or hints are
        left out.
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
        """Makes one call, and repeats it while the provider's errors are temporary and its breaker is closed."""
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
            Exception: the provider's own error.
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
            if not is_of_request(error) and endpoint.breaker.failed(permanent=is_permanent(error)):
                logger.warning("provider %s failed several times in a row; calls for summaries pause", run.target.name)
            raise
        self._allowance.left += PER_CALL
        endpoint.breaker.succeeded()
        endpoint.takes_hints = run.has_hints
        return text

    async def _announce(self, run: _Run) -> None:
        """Announces a call to hooks, as loop-streaming does for its goal evaluator, so that they can deny it.

        Raises:
            SummaryUnavailable: a hook denies it.
            AskLater: a hook would ask the user, and no request waits.
        """
        target, outbox = run.target, self._services.outbox
        data = {"provider": target.name, "model": target.model}
        await outbox.emit(RESOLVE, {**data, "scope": PURPOSE, "basis": target.basis})
        announced = {**data, "iteration": 0, "purpose": PURPOSE}
        reason = await outbox.denial(REQUEST, announced, run.may_ask)
        if reason is not None:
            text = f"a hook denies the call: {self._clean(reason)}"
            raise SummaryUnavailable(text, kind="denied", attempts=run.attempts, permanent=True)

    async def _asked(self, job: Job, run: _Run) -> str:
        prompts, target = self._services.prompts, run.target
        template = prompts.merge if job.level else prompts.segment
        words = str(max(20, job.summary_tokens * 3 // 4))
        instructions = template.fill(words=words, fence=fence_of(job.text), count=str(job.count))
        room = answer_room(job.summary_tokens, target, is_second=run.is_second) if run.has_hints else None
        request = summary_request(job, instructions, target, room)

        async def complete() -> Answer:
            own_call.set(True)  # only in the task of this call
            return read_answer(await target.provider.complete(request, **call_options(target)))

        run.attempts += 1
        self._services.totals.calls += 1
        answer = await within(complete, self._config.call_seconds)
        run.answers.append(answer)
        self._services.totals.answered(answer)
        count, is_last = self._services.count, run.is_second
        return summary_in(answer, job, instructions, count, clean=self._clean, is_last=is_last)
