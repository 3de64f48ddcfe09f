"""Classifies a provider's errors: whether to retry, how long to wait, and one word for events and logs."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isnan

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
from context_summarize.summaries.calls import ProviderStopped, error_text
from context_summarize.summaries.hints import HintRefusedError

_TOO_LARGE = (
    "context window",
    "context length",
    "context_length",
    "context size",
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
_KINDS_BY_NAME = {
    "TimeoutException": "timeout",
    "APITimeoutError": "timeout",
    "TransportError": "connection",
    "APIConnectionError": "connection",
}
"""Errors of HTTP clients, by class name, because this package imports none of these clients."""

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (QuotaExceededError, "quota"),
    (RateLimitError, "rate_limit"),
    (AuthenticationError, "auth"),
    (NotFoundError, "not_found"),
    (ConfigurationError, "configuration"),
    (ContentFilterError, "refusal"),
    (AbortError, "aborted"),
    (ProviderStopped, "aborted"),
    (LLMTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (InvalidRequestError, "invalid_request"),
    (HintRefusedError, "invalid_request"),
    (LLMError, "unavailable"),
    (ConnectionError, "connection"),
)
_BACKOFF = tenacity.wait_exponential_jitter(initial=1, max=30, jitter=1)


def is_too_large(error: BaseException) -> bool:
    """True if a provider reports that the input does not fit; some report it as `InvalidRequestError`.

    Ask `is_too_long_answer` first.
    """
    if isinstance(error, ContextLengthError):
        return True
    text = error_text(error).lower()
    return isinstance(error, InvalidRequestError) and any(words in text for words in _TOO_LARGE)


_OUTPUT = r"max(?:imum)?[ _]?(?:output|completion|new)?[ _]?tokens|(?:output|completion) tokens"
_OUTPUT_LIMIT = re.compile(
    rf"(?:{_OUTPUT})\b.*(?:too (?:large|high|big|many)|at most|less than|lower than|greater than|exceed|maximum|must be"
    rf"|supported range|limit|> ?\d)|(?:exceed\w*|at most|maximum|limit|larger than).*(?:{_OUTPUT})",
    re.IGNORECASE | re.DOTALL,
)
_ASKED_TOO_LONG = re.compile(rf"(?:{_OUTPUT})\b[^.:]{{0,60}}(?:is|are) too (?:large|high|big)", re.IGNORECASE)
_INPUT = re.compile(r"context[ _](?:length|window|limit|size)|maximum context|input|prompt|messages", re.IGNORECASE)


def is_too_long_answer(error: BaseException) -> bool:
    """True if a provider refuses the length of the answer that was asked for, not the size of the input.

    Providers word both alike ("too large"), and some report both by the same class. A text that speaks of the input as
    well means the input, unless it calls the asked length itself too large.
    """
    if isinstance(error, LLMError) and type(error) not in (LLMError, InvalidRequestError, ContextLengthError):
        return False
    text = error_text(error)[:2_000]
    return bool(_ASKED_TOO_LONG.search(text) or (_OUTPUT_LIMIT.search(text) and not _INPUT.search(text)))


def is_retryable(error: BaseException) -> bool:
    """True for errors that may go away: marked as retryable in the host's taxonomy, timeouts, connection loss."""
    if isinstance(error, LLMError):
        return bool(error.retryable)
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return _kind_by_name(error) is not None


def _kind_by_name(error: BaseException) -> str | None:
    return next((_KINDS_BY_NAME[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _KINDS_BY_NAME), None)


def is_permanent(error: BaseException) -> bool:
    """True if a retry cannot help: auth, quota, an unknown model, a wrong configuration."""
    return isinstance(error, AuthenticationError | QuotaExceededError | NotFoundError | ConfigurationError)


def wait_seconds(state: tenacity.RetryCallState) -> float:
    """Seconds before the next attempt: as many as the provider asks for, else exponential with jitter."""
    error = state.outcome.exception() if state.outcome else None
    after = _retry_after(error)
    return float(_BACKOFF(state)) if after is None else after


def _retry_after(error: BaseException | None) -> float | None:
    """Seconds that a provider asks to wait, 0 or more; None where it names no such number."""
    try:
        after = getattr(error, "retry_after", None)
        seconds = float(after) if isinstance(after, int | float) else None
    except Exception:  # noqa: BLE001 - a foreign property may raise anything
        return None
    return None if seconds is None or isnan(seconds) else max(0.0, seconds)


def unavailable(
    error: Exception, attempts: int, retry_in_s: float | None = None, clean: Callable[[str], str] = str
) -> SummaryUnavailable:
    """The error as this package reports it; `clean` removes secrets from its text."""
    kind = next((word for cls, word in _KINDS if isinstance(error, cls)), None) or _kind_by_name(error) or "error"
    after = _retry_after(error)
    text = error_text(error) if isinstance(error, ProviderStopped) else f"{type(error).__name__}: {error_text(error)}"
    return SummaryUnavailable(
        clean(text)[:500],
        kind=kind,
        attempts=attempts,
        retry_in_s=retry_in_s if after is None else after,
        permanent=is_permanent(error),
    )
