"""Classifies a provider's errors, limits the calls that bring no summary, and contains the circuit breaker."""

from __future__ import annotations

import asyncio
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
_PERMANENT = frozenset({"quota", "auth", "not_found", "configuration"})
_BACKOFF = tenacity.wait_exponential_jitter(initial=1, max=30, jitter=1)


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
    """Returns True if no request can succeed: auth, quota, an unknown model, a wrong configuration."""
    return kind_of(error) in _PERMANENT


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
        refused=isinstance(error, AnswerRefusedError),
    )


LOSSES, PER_CALL = 300, 10
"""The allowance is 300 points. A lost call costs ten, and a served request gives one back. So in 300 requests at most
(300 + 300) / 10 = 60 calls are lost."""


class Allowance:
    """Limits the calls that bring no summary, for models whose occasional good answer closes the breaker again.

    Two of three answers of SmolLM2-135M were no summaries. Without this limit it wastes 100 calls in 300 requests.
    """

    def __init__(self, served: Callable[[], int]) -> None:
        self._served, self._counted = served, 0
        self.left = LOSSES
        """A call takes `PER_CALL` of it, and returns them if it brings a summary."""

    @property
    def is_left(self) -> bool:
        """True while one more call may be lost."""
        served = self._served()
        self.left = min(LOSSES, self.left + served - self._counted)
        self._counted = served
        return self.left >= PER_CALL


FAILURES = 5
"""Failed calls in a row that open the breaker."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 600.0
"""Seconds without calls. Each further pause is twice as long."""


class Breaker:
    """Five failures of a provider in a row stop its calls for a time; then one call at a time probes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures, self._pause, self._until = 0, 0.0, 0.0
        self._probing = asyncio.Lock()

    @property
    def retry_in_s(self) -> float | None:
        """Seconds until a call is allowed; None if one is allowed now."""
        return left if (left := self._until - self._clock()) > 0 else None

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Lets a call run. After a pause the first call is a probe; the others wait for its outcome."""
        return self._probing if self._pause else nullcontext()

    def reset(self) -> None:
        """Closes the breaker and forgets its failures."""
        self._failures, self._pause, self._until = 0, 0.0, 0.0

    def failed(self, *, permanent: bool = False) -> bool:
        """Counts a failed call; `permanent` opens the breaker at once. Returns True if failures in a row open it."""
        self._failures += 1
        if self.retry_in_s is not None:  # the call began before the pause, so it is no probe
            return False
        is_probe = self._pause > 0
        if not (is_probe or permanent or self._failures >= FAILURES):
            return False
        self._pause = min(LONGEST_PAUSE, 2 * self._pause if self._pause else FIRST_PAUSE)
        self._until = self._clock() + self._pause
        return not permanent

    def end_pause(self) -> None:
        """Ends the pause, because the provider has answered another caller: the next call is a probe."""
        self._until = 0.0
