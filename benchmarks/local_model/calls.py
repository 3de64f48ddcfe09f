"""A provider that notes every call: how long it took, what the engine read, and what was written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

SUMMARY, SESSION = "summary", "session"
"""What a call is for: a contestant's summary, or the session's own request."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the model."""

    purpose: str
    """`summary` or `session`."""
    began: float
    """Seconds since the start of the session."""
    seconds: float
    finish: str
    """Why the answer ended; the error's class where there was none."""
    read: int = 0
    """Tokens of its input."""
    cached: int = 0
    """Tokens of those that the engine took from its prompt cache."""
    wrote: int = 0
    text: str = ""
    """The answer to a request for a summary."""

    @property
    def is_answered(self) -> bool:
        """True where the model wrote something."""
        return self.wrote > 0


class Noted:
    """A provider whose calls are noted.

    Args:
        calls: where the notes go.
        started: the session's start, of `time.monotonic`.
    """

    def __init__(self, provider: Any, calls: list[Call], purpose: str, started: float) -> None:
        self._provider, self._calls, self._purpose, self._started = provider, calls, purpose, started

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        """The provider's answer; its errors are noted too."""
        began = time.monotonic()
        try:
            response = await self._provider.complete(request, **kwargs)
        except BaseException as error:  # a call that takes too long is cancelled
            self._note(began, finish=type(error).__name__)
            raise
        usage = response.usage
        self._note(
            began,
            finish=response.finish_reason or "",
            read=usage.input_tokens if usage else 0,
            cached=(usage.cache_read_tokens or 0) if usage else 0,
            wrote=usage.output_tokens if usage else 0,
            text=answer_of(response) if self._purpose == SUMMARY else "",
        )
        return response

    def _note(self, began: float, **told: Any) -> None:
        seconds, at = round(time.monotonic() - began, 2), round(began - self._started, 1)
        self._calls.append(Call(purpose=self._purpose, began=at, seconds=seconds, **told))


def answer_of(response: Any) -> str:
    """The text of an answer."""
    return "\n".join(block.text for block in response.content if block.type == "text")
