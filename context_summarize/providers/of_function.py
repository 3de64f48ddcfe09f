"""`provider_of`: a provider from an async function, for a program with an SDK and a loop of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from amplifier_core import llm_errors as errors
from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock
from amplifier_core.models import ProviderInfo

from context_summarize.errors import ConfigError
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import content_text

Complete: TypeAlias = Callable[[list[JsonRow], int], Awaitable[str | None]]
"""Takes the rows of a request and the most tokens of an answer; returns the answer's text."""
_BY_STATUS: dict[int, type[errors.LLMError]] = {
    401: errors.AuthenticationError,
    403: errors.AccessDeniedError,
    404: errors.NotFoundError,
    408: errors.LLMTimeoutError,
    429: errors.RateLimitError,
}


def provider_of(
    complete: Complete, *, context_window: int, max_output_tokens: int, name: str = "function"
) -> FunctionProvider:
    """Returns a provider whose summaries the function writes; it also tells the window of the program's own requests.

    Args:
        complete: sends one request without retries, as `await complete(rows, max_tokens)`: a system row and a user row.
            It may raise its SDK's errors: their `status_code` and `Retry-After` say whether a new try makes sense.
        context_window, max_output_tokens: tokens of the model.

    Raises:
        ConfigError: `complete` is no async function, or a size is no positive whole number.
    """
    if not any(map(inspect.iscoroutinefunction, (complete, getattr(complete, "__call__", None)))):  # noqa: B004
        raise ConfigError(
            f"complete must be an async function of rows and max_tokens, got {complete!r}; "
            "an async function calls a synchronous one as `await asyncio.to_thread(function, rows, max_tokens)`"
        )
    sizes = {"context_window": context_window, "max_output_tokens": max_output_tokens}
    for size, value in sizes.items():
        if type(value) is not int or value < 1:
            raise ConfigError(f"{size} must be a number of tokens, 1 or more, got {value!r}")
    return FunctionProvider(complete, name, sizes)


class FunctionProvider:
    """Calls a function for each `complete()`."""

    def __init__(self, complete: Complete, name: str, sizes: dict[str, int]) -> None:
        self.name = name
        self._complete, self._sizes = complete, sizes

    def get_info(self) -> ProviderInfo:
        """Returns the window, in the host's format."""
        return ProviderInfo(id=self.name, display_name=self.name, defaults=self._sizes)

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        """Returns one answer.

        Raises:
            TypeError: the function returns no text.
            Exception: the function's own error, as the host's kind of error if it tells a status or a lost connection.
        """
        rows = [{"role": row.role, "content": content_text(row.model_dump()["content"])} for row in request.messages]
        try:
            text = await self._complete(rows, request.max_output_tokens or self._sizes["max_output_tokens"])
        except Exception as error:
            raise _known(error, self.name) from error
        if not isinstance(text, str | None):
            raise TypeError(f"the function of provider {self.name!r} must return text, got {type(text).__name__}")
        return ChatResponse(content=[TextBlock(text=text or "")])


def _known(error: Exception, provider: str) -> Exception:
    """Returns the host's error for one of an SDK; any other error as it is."""
    status, kind = getattr(error, "status_code", None), type(error).__name__.lower()
    if isinstance(status, int):
        headers = getattr(getattr(error, "response", None), "headers", {})
        return error_of(status, str(error), provider, headers.get("retry-after", ""))
    if "timeout" in kind:
        return errors.LLMTimeoutError(str(error), provider=provider)
    return errors.ProviderUnavailableError(str(error), provider=provider) if "connect" in kind else error


def error_of(status: int, text: str, provider: str, retry_after: str = "") -> errors.LLMError:
    """Returns the host's error for the status of a response; `retry_after` is its header, in seconds."""
    usual = errors.ProviderUnavailableError if status >= 500 else errors.InvalidRequestError
    kind = errors.LLMError if status < 400 else _BY_STATUS.get(status, usual)
    waits = float(retry_after) if retry_after.isdecimal() else None
    return kind(text, provider=provider, status_code=status, retry_after=waits)
