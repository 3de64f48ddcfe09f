"""Classifies a provider's errors, and contains the circuit breaker."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import tenacity
from amplifier_core.llm_errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NotFoundError,
    QuotaExceededError,
    RateLimitError,
)

from context_summarize.background import Stopped, error_text
from context_summarize.errors import SummaryUnavailable
from context_summarize.redaction import Redact
from context_summarize.summaries.answer import AnswerRefusedError

_TOO_LARGE = re.compile(
    r"context[ _](?:window|length|size|limit)|contextlengtherror|request_too_large|too many tokens|reduce the length"
    r"|maximum (?:context|number of tokens|model length|prompt length)|input length"
    r"|(?:input|prompt|messages|content|request)(?:(?!took|string|image).){0,40}too (?:long|large)"
)
"""The words with which OpenAI, vLLM, Anthropic, llama.cpp, Gemini, Bedrock and xAI say that an input is too long.

It does not match a request that took too long, nor one long field: "Invalid 'input[3].call_id': string too long".
"""
_RATE = re.compile(r"rate.?limit|per min")
"""Words of rate limits, whose errors may also match `_TOO_LARGE`."""
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (ContextLengthError, "too_large"),
    (QuotaExceededError, "quota"),
    (RateLimitError, "rate_limit"),
    (AuthenticationError, "auth"),
    (NotFoundError, "not_found"),
    (ConfigurationError, "configuration"),
    (ContentFilterError, "refusal"),
    (AbortError, "aborted"),
    (Stopped, "aborted"),
    (LLMTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (InvalidRequestError, "invalid_request"),
    (LLMError, "unavailable"),
    (ConnectionError, "connection"),
)
_LASTING = frozenset({"auth", "not_found", "configuration"})
"""Kinds of errors that do not go away while a session lasts: 401, 403, 404, a wrong configuration."""
_BACKOFF = tenacity.wait_exponential_jitter()


def says_too_large(text: str) -> bool:
    """Returns True if the text of an error, or its type, says that the input is too long."""
    return bool(_TOO_LARGE.search(text.lower())) and not _RATE.search(text.lower())


def kind_of(error: BaseException) -> str:
    """Returns one word for an error. Providers raise the host's `LLMError`s; any other error is ours or a defect."""
    if isinstance(error, AnswerRefusedError):
        return error.kind
    kind = next((word for cls, word in _KINDS if isinstance(error, cls)), "error")
    is_size = kind == "invalid_request" and says_too_large(error_text(error))  # as from openai
    return "too_large" if is_size else kind


def is_temporary(error: BaseException) -> bool:
    """Returns True if a retry may succeed soon: the error says so, or is a timeout or a lost connection."""
    return bool(error.retryable) if isinstance(error, LLMError) else kind_of(error) in ("timeout", "connection")


def is_permanent(error: BaseException) -> bool:
    """Returns True if no request can succeed soon: auth, quota, an unknown model, a wrong configuration."""
    return kind_of(error) in _LASTING or kind_of(error) == "quota"


def is_refusal(error: BaseException) -> bool:
    """Returns True if the provider is up: it refuses this form of the request, or its answer is no summary."""
    return isinstance(error, AnswerRefusedError) or kind_of(error) in ("too_large", "invalid_request")


def wait_seconds(state: tenacity.RetryCallState) -> float:
    """Returns the seconds before the next attempt: those that the provider asks for, else exponential with jitter."""
    after = _retry_after(state.outcome.exception() if state.outcome else None)
    return float(_BACKOFF(state)) if after is None else after


def _retry_after(error: BaseException | None) -> float | None:
    """Returns the seconds that a provider asks to wait, 0 or more; None if it names no number."""
    after = getattr(error, "retry_after", None)
    return max(0.0, float(after)) if isinstance(after, int | float) else None


def unavailable(error: Exception, attempts: int, retry_in_s: float | None, clean: Redact) -> SummaryUnavailable:
    """Returns the error as this package reports it; `clean` removes secrets from its text."""
    if isinstance(error, SummaryUnavailable):
        return error
    is_ours, after = isinstance(error, AnswerRefusedError | Stopped), _retry_after(error)
    text = error_text(error) if is_ours else f"{type(error).__name__}: {error_text(error)}"
    return SummaryUnavailable(
        clean(text)[:500],
        kind=kind_of(error),
        attempts=attempts,
        retry_in_s=retry_in_s if after is None else after,
        permanent=is_permanent(error),
    )


FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 600.0
"""Seconds without calls. Each further pause is twice as long."""


class Breaker:
    """Stops the calls to one provider and model: for a time after five failures in a row, for the session if none can
    succeed. After a pause one call at a time probes it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._probing = asyncio.Lock()
        self.reset()

    def reset(self) -> None:
        """Closes the breaker and forgets its failures."""
        self._failures, self._pause, self._until, self._lasting = 0, 0.0, 0.0, 0

    @property
    def is_open(self) -> bool:
        """True while no call is allowed."""
        return self._clock() < self._until

    @property
    def is_for_session(self) -> bool:
        """True while calls are stopped for the rest of the session."""
        return self._until == math.inf

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until a call is allowed; None if one is allowed now, or none for the rest of the session."""
        return self._until - self._clock() if self.is_open and not self.is_for_session else None

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Lets a call run. After a pause the first call is a probe; the others wait for its outcome."""
        return self._probing if self._pause else nullcontext()

    def failed(self, error: BaseException) -> bool:
        """Counts a failed call; returns True if a pause begins."""
        self._failures += 1
        if self.is_open:  # the call began before the pause, so it is no probe
            return False
        is_lasting = kind_of(error) in _LASTING
        if not (self._pause or is_lasting or is_permanent(error) or self._failures >= FAILURES):
            return False
        self._lasting += is_lasting
        self._pause = min(LONGEST_PAUSE, 2 * self._pause if self._pause else FIRST_PAUSE)
        self._until = math.inf if is_lasting else self._clock() + self._pause
        return True

    def end_pause(self) -> None:
        """Ends the pause, because provider and model have answered another caller: the next call is a probe.

        If the probe meets an error that lasts, the pause is not ended again.
        """
        if self._lasting < 2:
            self._until = 0.0
