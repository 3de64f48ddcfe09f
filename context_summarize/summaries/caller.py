"""Calls of one provider and model: retries, the breaker, the allowances, and what each answer is judged to be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import tenacity
from amplifier_core.message_models import ChatRequest

from context_summarize.errors import SummaryUnavailable
from context_summarize.summaries.allowance import Allowance
from context_summarize.summaries.answer import Answer, add_usage, read_answer
from context_summarize.summaries.breaker import Breaker, Open
from context_summarize.summaries.budget import CallBudget
from context_summarize.summaries.calls import error_text, within
from context_summarize.summaries.failures import (
    is_permanent,
    is_retryable,
    is_too_large,
    is_too_long_answer,
    wait_seconds,
)
from context_summarize.summaries.hints import HintRefusedError, Hints
from context_summarize.summaries.job import Target
from context_summarize.summaries.services import Services
from context_summarize.summaries.usage import Run
from context_summarize.summaries.validation import Judged

logger = logging.getLogger(__name__)

TOTAL_DEADLINE = 240.0
"""Seconds that all attempts for one key may take together; two calls may always take their `request_timeout`."""
MOST_LINGERING = 8
"""Calls that ignore their cancellation; while so many go on, no further one is made."""

own_call: ContextVar[bool] = ContextVar("context_summarize_own_call", default=False)
"""True inside our own provider calls, so that their `llm:response` events are told from the host's."""


class TooLargeError(Exception):
    """The provider refused the size of the input."""


class TooLongAnswerError(Exception):
    """The provider refused the length of the answer that was asked for."""


Judge = Callable[[Answer], Judged]


class Caller:
    """One provider and model, as they have shown themselves in this session."""

    def __init__(self, name: str, services: Services, budget: CallBudget) -> None:
        self._name = name
        self._services = services
        self._config = services.config
        self._most_seconds = max(TOTAL_DEADLINE, 2 * services.config.request_timeout)
        self._clock = services.clock
        self._budget = budget
        self._lingering: set[asyncio.Task[Any]] = set()
        self.allowance = Allowance()
        self._hints = Hints()
        self.forget_failures()

    def forget_failures(self) -> None:
        """Begin with a closed breaker. The budget and the calls that go on stay as they are."""
        self.breaker = Breaker(self._name, self._clock, lambda: self._budget.is_low)

    @property
    def is_paused(self) -> bool:
        """True while no call is to be made."""
        return bool(self.breaker.retry_in_s) or self._budget.is_spent or len(self._lingering) >= MOST_LINGERING

    def seconds_left(self, run: Run) -> float:
        """Seconds that this run may still take."""
        return self._most_seconds - (self._clock() - run.started)

    async def ask(self, request: ChatRequest, target: Target, run: Run, judge: Judge) -> Judged:
        """One answer, with retries of what may be retried; a call without a hint that was refused is made at once.

        Raises:
            TooLargeError, TooLongAnswerError: the provider refused the size of the request.
            Open: no call is allowed now.
            SummaryUnavailable: no time is left.
            Exception: what the provider raised in the end.
        """
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: is_retryable(error) or _is_hint(error)),
            wait=_wait,
            stop=lambda state: self.breaker.is_open or self._out_of_time(state, run),
            sleep=self._services.sleep,
            reraise=True,
        )
        judged: Judged = await retrying(self._once, request, target, run, judge)
        return judged

    def _out_of_time(self, state: tenacity.RetryCallState, run: Run) -> bool:
        is_last = state.attempt_number >= self._config.retry_attempts and not _is_hint(_raised(state))
        return is_last or _wait(state) >= self.seconds_left(run)

    async def _once(self, request: ChatRequest, target: Target, run: Run, judge: Judge) -> Judged:
        turn = await self.breaker.enter()
        try:
            left = self.seconds_left(run)
            if left <= 0:
                raise SummaryUnavailable("no time left", kind="timeout", attempts=run.attempts)
            self._check()
            used = False
            try:
                judged = await self._judged(request, target, run, (min(left, self._config.request_timeout), judge))
                used = judged.kind is None and not run.is_piece
                return judged
            finally:
                self._budget.end(used=used)
        finally:
            self.breaker.leave(turn)

    def _check(self) -> None:
        """Take one call of the budget.

        Raises:
            Open: none is left, or too many calls ignore their cancellation.
        """
        if len(self._lingering) >= MOST_LINGERING:
            raise Open(None, f"no further calls: {MOST_LINGERING} calls of {self._name} ignore their cancellation")
        if not self._budget.take():
            raise Open(None, "no calls for now: too many brought no usable summary")

    async def _judged(self, request: ChatRequest, target: Target, run: Run, how: tuple[float, Judge]) -> Judged:
        """Call, read and judge; whatever is raised meanwhile is a failure of the provider."""
        seconds, judge = how
        try:
            answer = await self._answer(request, target, run, seconds)
            add_usage(run, answer, self._services.totals)
            self.allowance.learn(reasons=answer.reasons)
            judged = judge(answer)
        except Exception as error:
            if is_too_long_answer(error):
                self.breaker.failed()
                raise TooLongAnswerError(error_text(error)) from error
            if is_too_large(error):
                raise TooLargeError(error_text(error)) from error  # a failure only if no smaller input is accepted
            self.breaker.failed(permanent=is_permanent(error))
            raise
        if judged.kind is None:
            self.breaker.succeeded()
        return judged

    async def _answer(self, request: ChatRequest, target: Target, run: Run, seconds: float) -> Answer:
        run.attempts += 1
        self._services.totals.calls += 1
        response = await within(self._complete(request, target), seconds, self._lingering, "context-summarize:call")
        return read_answer(response)

    async def _complete(self, request: ChatRequest, target: Target) -> Any:
        token = own_call.set(True)
        try:
            options = {"model": target.model} if target.model else {}
            return await self._hints.complete(target.provider, request, options)
        finally:
            own_call.reset(token)


def _raised(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _is_hint(error: BaseException | None) -> bool:
    return isinstance(error, HintRefusedError)


def _wait(state: tenacity.RetryCallState) -> float:
    return 0.0 if _is_hint(_raised(state)) else wait_seconds(state)
