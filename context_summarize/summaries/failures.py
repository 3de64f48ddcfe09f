"""Classifies a provider's errors: whether to retry, how long to wait, and one word for events and logs."""

from __future__ import annotations

from collections.abc import Callable

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

from context_summarize.errors import SummaryUnavailable

_TOO_LARGE = (
    "context window",
    "context length",
    "context_length",
    "maximum context",
    "maximum number of tokens",
    "request_too_large",
    "too long",
    "too large",
    "too many tokens",
    "exceeds the context",
    "reduce the length",
    "input length",
)
_CONNECTION_NAMES = frozenset({"TransportError", "TimeoutException", "APIConnectionError", "APITimeoutError"})
"""Connection errors of HTTP clients, by class name, because this package imports none of these clients."""

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (QuotaExceededError, "quota"),
    (RateLimitError, "rate_limit"),
    (AuthenticationError, "auth"),
    (NotFoundError, "not_found"),
    (ConfigurationError, "configuration"),
    (ContentFilterError, "refusal"),
    (AbortError, "aborted"),
    (LLMTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (InvalidRequestError, "invalid_request"),
    (LLMError, "unavailable"),
    (ConnectionError, "unavailable"),
)
_BACKOFF = tenacity.wait_exponential_jitter(initial=1, max=30, jitter=1)


def is_too_large(error: BaseException) -> bool:
    """True if a provider reports that the input does not fit; some report it as `InvalidRequestError`."""
    if isinstance(error, ContextLengthError):
        return True
    text = str(error).lower()
    return isinstance(error, InvalidRequestError) and any(words in text for words in _TOO_LARGE)


def is_retryable(error: BaseException) -> bool:
    """True for errors that may go away: marked as retryable in the host's taxonomy, timeouts, connection loss."""
    if isinstance(error, LLMError):
        return bool(error.retryable)
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return any(cls.__name__ in _CONNECTION_NAMES for cls in type(error).__mro__)


def is_permanent(error: BaseException) -> bool:
    """True if a retry cannot help: auth, quota, an unknown model, a wrong configuration."""
    return isinstance(error, AuthenticationError | QuotaExceededError | NotFoundError | ConfigurationError)


def wait_seconds(state: tenacity.RetryCallState) -> float:
    """Seconds before the next attempt: as many as the provider asks for, else exponential with jitter."""
    error = state.outcome.exception() if state.outcome else None
    after = getattr(error, "retry_after", None)
    return max(0.0, float(after)) if isinstance(after, int | float) else float(_BACKOFF(state))


def unavailable(
    error: Exception, attempts: int, retry_in_s: float | None = None, clean: Callable[[str], str] = str
) -> SummaryUnavailable:
    """The error as this package reports it; `clean` removes secrets from its text."""
    kind = next((word for cls, word in _KINDS if isinstance(error, cls)), "error")
    after = getattr(error, "retry_after", None)
    return SummaryUnavailable(
        clean(f"{type(error).__name__}: {error}")[:500],
        kind=kind,
        attempts=attempts,
        retry_in_s=float(after) if isinstance(after, int | float) else retry_in_s,
        permanent=is_permanent(error),
    )
