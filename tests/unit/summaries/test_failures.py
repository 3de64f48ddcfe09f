"""Classes of a provider's errors: what is retried, for how long, and what is reported of them."""

from __future__ import annotations

from typing import Any

import pytest
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
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)

from context_summarize.background import Stopped
from context_summarize.summaries.failures import (
    is_permanent,
    is_retryable,
    unavailable,
    wait_seconds,
)


class APIConnectionError(Exception):
    """Named as an HTTP client names a lost connection."""


class ConnectError(APIConnectionError):
    """A subclass of it."""


class APITimeoutError(APIConnectionError):
    """Named as an HTTP client names an answer that is late."""


class Later(APITimeoutError):
    """A subclass of it."""


KINDS: list[tuple[Exception, str, bool, bool]] = [
    (QuotaExceededError("spent"), "quota", False, True),
    (RateLimitError("slow"), "rate_limit", True, False),
    (AuthenticationError("401"), "auth", False, True),
    (NotFoundError("no model"), "not_found", False, True),
    (ConfigurationError("no key"), "configuration", False, True),
    (ContentFilterError("blocked"), "refusal", False, False),
    (ContextLengthError("no"), "too_large", False, False),
    (InvalidRequestError("the prompt is TOO LONG"), "too_large", False, False),
    (InvalidRequestError("input length and max_tokens exceed the context limit"), "too_large", False, False),
    (AbortError("aborted"), "aborted", False, False),
    (Stopped("CancelledError: "), "aborted", False, False),
    (LLMTimeoutError("late"), "timeout", True, False),
    (TimeoutError("late"), "timeout", True, False),
    (InvalidRequestError("bad"), "invalid_request", False, False),
    (ProviderUnavailableError("503"), "unavailable", True, False),
    (LLMError("odd"), "unavailable", False, False),
    (ConnectionResetError("reset"), "connection", True, False),
    (Later("late"), "timeout", True, False),
    (ConnectError("All connection attempts failed"), "connection", True, False),
    (ValueError("no JSON"), "error", False, False),
]


def test_each_class_has_its_word_and_its_treatment() -> None:
    """One word for events and logs; whether a retry may help, or cannot."""
    for error, kind, retryable, permanent in KINDS:
        found = unavailable(error, attempts=3)
        assert (found.kind, found.permanent, found.attempts) == (kind, permanent, 3)
        assert (is_retryable(error), is_permanent(error)) == (retryable, permanent), error


def waited(error: Exception | None, attempt: int) -> float:
    """Seconds before the next attempt after this many."""
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    state.attempt_number = attempt
    if error is not None:
        state.set_exception((type(error), error, None))
    return wait_seconds(state)


class Foreign(Exception):
    """Its time to wait cannot be read."""

    @property
    def retry_after(self) -> float:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("after", "seconds"), [(7, 7.0), (0.5, 0.5), (0, 0.0), (-3, 0.0), (float("inf"), float("inf"))]
)
def test_the_time_that_a_provider_asks_for_is_waited(after: Any, seconds: float) -> None:
    """Never less than nothing."""
    assert waited(RateLimitError("slow", retry_after=after), 1) == seconds
    assert unavailable(RateLimitError("slow", retry_after=after), 1, retry_in_s=60.0).retry_in_s == seconds


@pytest.mark.parametrize(
    "error", [None, ValueError("x"), Foreign("x"), RateLimitError("slow", retry_after=float("nan"))]
)
def test_without_such_a_time_waits_double_up_to_half_a_minute(error: Exception | None) -> None:
    """With up to a second of jitter, which the longest wait takes in."""
    for attempt, least in ((1, 1.0), (2, 2.0), (3, 4.0)):
        assert least <= waited(error, attempt) <= least + 1
    assert {waited(error, 20) for _ in range(5)} == {30.0}
    if error is not None:
        assert unavailable(error, 1, retry_in_s=60.0).retry_in_s == 60.0
        assert unavailable(error, 1).retry_in_s is None


def test_the_report_names_the_class_is_clean_and_short() -> None:
    """500 characters; what stopped without an `Exception` is told as it is."""
    assert (
        str(unavailable(ValueError("key=abc"), 1, clean=lambda text: text.replace("abc", "*"))) == "ValueError: key=*"
    )
    assert str(unavailable(Stopped("SystemExit: 1"), 1)) == "SystemExit: 1"
    assert len(str(unavailable(ValueError("x" * 1_000), 1))) == 500
