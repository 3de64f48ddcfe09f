"""Gets one summary from the provider. It tries again if that may help, within limits of time and calls."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial

import tenacity

from context_summarize.background import in_thread, within
from context_summarize.core.nodes import Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import FAILURE, REQUEST, RESOLVE, SUMMARY, AskLater
from context_summarize.summaries.answer import Answer, AnswerRefusedError, read_answer, summary_in
from context_summarize.summaries.failures import (
    Breaker,
    is_permanent,
    is_refusal,
    is_temporary,
    kind_of,
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
    instructions,
    summary_request,
)
from context_summarize.summaries.services import Services

logger = logging.getLogger(__name__)

LONGEST_WAIT = 120.0
"""Seconds that one call may take; twice `wait_seconds`, if that is more. Also seconds before another attempt: if the
provider asks for a longer wait, this summary gets no further attempt."""
_ATTEMPTS = 3
"""How often one request is sent while the provider's errors are temporary."""
_HALVINGS = 3
"""How often an input that is too large for the provider is halved.

Some providers report no window. The server behind one may take 8,192 tokens, and a segment may have 25,000.
"""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events differ from the host's."""


@dataclass(slots=True)
class _Endpoint:
    """One provider and model, and what this session has learnt about them."""

    breaker: Breaker
    reported: set[str] = field(default_factory=set)
    """Kinds of permanent errors that were reported since its last summary."""
    takes_hints: bool = True
    """False once it has refused a request with hints (output limit, reasoning effort) and answered one without.

    The openai provider passes any effort on: gpt-5.5-pro refuses "low", gpt-4 every effort. For unknown models this
    provider reports 128,000 tokens of output. gpt-4-turbo allows 4,096, and refuses with "max_tokens is too large".
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
    had_bad_answer: bool = False
    """True after an answer that was no summary."""


class Summarizer:
    """Turns jobs into summaries."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._config = services.config
        self._clean = services.redact or str
        self._endpoints: dict[tuple[str, str | None], _Endpoint] = {}

    def _endpoint(self, target: Target) -> _Endpoint:
        return self._endpoints.setdefault((target.name, target.model), _Endpoint(Breaker(self._services.clock)))

    def is_paused(self, target: Target) -> bool:
        """Returns True while no call to this provider and model is allowed."""
        return self._endpoint(target).breaker.is_open

    def answered_elsewhere(self, provider: str, model: object) -> None:
        """Ends the pause of this provider and model: they have answered the host's own request.

        Where calls for summaries name no model, the provider takes the one that it takes for the host.
        """
        for asked in ((provider, None), (provider, model)):
            if asked in self._endpoints:
                self._endpoints[asked].breaker.end_pause()

    def forget_failures(self) -> None:
        """Closes all breakers. Refused hints are still left out."""
        for endpoint in self._endpoints.values():
            endpoint.breaker.reset()

    async def make(self, job: Job, target: Target, may_ask: Callable[[], bool] = lambda: False) -> Summary:
        """Returns one summary from the provider; reports it in events, totals and the log.

        Raises:
            SummaryUnavailable: every attempt failed, or the answers were refused.
            AskLater: a hook would ask the user, and no request waits.
        """
        endpoint = self._endpoint(target)
        async with endpoint.breaker.turn():
            if endpoint.breaker.is_open:
                wait = endpoint.breaker.retry_in_s
                raise SummaryUnavailable("calls to this model are paused", kind="breaker_open", retry_in_s=wait)
            run, started = _Run(target, endpoint, endpoint.takes_hints, may_ask), self._services.clock()
            try:
                text = await self._text_of(job, run)
            except AskLater:
                raise
            except Exception as error:
                # Outages have been counted in `_call`. A refusal counts once for each summary.
                if is_refusal(error):
                    self._count(error, run)
                reported = unavailable(error, run.attempts, endpoint.breaker.retry_in_s, self._clean)
                self._report_failed(job, reported, run)
                raise reported from error
            summary = self._summary(job, run, text)
        self._report_made(summary, self._services.clock() - started)
        return summary

    def _report_made(self, summary: Summary, seconds: float) -> None:
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

    def _report_failed(self, job: Job, error: SummaryUnavailable, run: _Run) -> None:
        """Reports a failure: a permanent one once until a summary is made, a pause before any call never.

        The user is told of permanent ones. Of the others the compaction tells that shows fallbacks.
        """
        if not error.attempts and not error.permanent:
            return
        self._services.totals.failed += 1
        endpoint, target = run.endpoint, run.target
        if error.permanent:
            if error.kind in endpoint.reported:
                return
            endpoint.reported.add(error.kind)
            asked = target.name if target.model is None else f"{target.name} ({target.model})"
            until = ", and is not asked again in this session" if endpoint.breaker.is_for_session else ""
            self._services.outbox.tell(f"context: {asked} writes no summary{until}: {error} ({error.kind})", "error")
        logger.debug("no summary for key %s, level %d: %s (%s)", job.key[:12], job.level, error, error.kind)
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

    async def _text_of(self, job: Job, run: _Run) -> str:
        """Returns the text of a summary. After a refusal or a bad answer it sends a changed request.

        After a bad answer, it allows a longer one. After a refusal, the input is cut if it was too large; else the
        hints are left out.
        """
        apart = self._services.count(instructions(job, self._services.prompts))
        limit = input_limit(job.summary_tokens, run.target, apart)
        shown = job if limit is None else job.cut_to(limit)
        while True:
            try:
                return await self._call_repeatedly(shown, run)
            except AnswerRefusedError as error:
                logger.info("an answer is no summary: key %s, %s, attempt %d", job.key[:12], error.kind, run.attempts)
                if run.had_bad_answer:
                    raise
                run.had_bad_answer = True
            except Exception as error:
                kind = kind_of(error)
                if kind == "too_large" and shown.source_tokens << _HALVINGS > job.source_tokens:
                    shown = shown.cut_to(shown.source_tokens // 2)
                elif kind == "invalid_request" and run.has_hints:
                    run.has_hints = False
                else:
                    raise

    async def _call_repeatedly(self, job: Job, run: _Run) -> str:
        """Makes one call, and at most two more after temporary errors, if no long wait and no pause stands between."""

        def gives_up(state: tenacity.RetryCallState) -> bool:
            is_late = state.attempt_number >= _ATTEMPTS or wait_seconds(state) > LONGEST_WAIT
            return is_late or run.endpoint.breaker.is_open

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(is_temporary),
            wait=wait_seconds,
            stop=gives_up,
            sleep=self._services.sleep,
            reraise=True,
        )
        return await retrying(self._call, job, run)

    async def _call(self, job: Job, run: _Run) -> str:
        """Makes one call and returns the summary that it brings.

        Raises:
            SummaryUnavailable: a hook denies it.
            AnswerRefusedError: the answer is no summary.
            Exception: the provider's own error.
        """
        await self._ask_hooks(run)
        endpoint = run.endpoint
        try:
            text = await self._ask_provider(job, run)
        except Exception as error:
            if not is_refusal(error):
                self._count(error, run)
            raise
        endpoint.breaker.reset()
        endpoint.reported.clear()
        endpoint.takes_hints = run.has_hints  # False if it has now answered a request without them
        return text

    def _count(self, error: Exception, run: _Run) -> None:
        """Counts a failure, and tells of a pause that it begins; of a permanent error `_report_failed` tells."""
        if run.endpoint.breaker.failed(error) and not is_permanent(error):
            reason = " ".join(str(unavailable(error, run.attempts, None, self._clean)).split())
            text = f"context: {run.target.name} failed several times in a row; calls for summaries pause: {reason}"
            self._services.outbox.tell(text, "warning")

    async def _ask_hooks(self, run: _Run) -> None:
        """Tells hooks of a call first, as loop-streaming does, so that they can deny it.

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

    async def _ask_provider(self, job: Job, run: _Run) -> str:
        target = run.target
        room = answer_room(job.summary_tokens, target, had_bad_answer=run.had_bad_answer) if run.has_hints else None
        request = summary_request(job, self._services.prompts, target, room)

        async def complete() -> Answer:
            own_call.set(True)  # only in the task of this call
            return read_answer(await target.provider.complete(request, **call_options(target)))

        run.attempts += 1
        self._services.totals.calls += 1
        answer = await within(complete, max(LONGEST_WAIT, 2 * self._config.wait_seconds))
        run.answers.append(answer)
        self._services.totals.answered(answer)
        read = partial(summary_in, count=self._services.count, clean=self._clean, is_last=run.had_bad_answer)
        return await in_thread(len(answer.text), read, answer, job)
