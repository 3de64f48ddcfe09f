"""A provider that answers when the test lets it, and the summary that tests have it answer with."""

from __future__ import annotations

import asyncio
from typing import Any

from amplifier_core.message_models import ChatRequest

from context_summarize.testing import ScriptedProvider


def answer(request: ChatRequest) -> str:
    """A summary that differs from part to part and is the same for the same part: it names the fence."""
    return f"Goal: look up orders. Part {str(request.messages[1].content).split()[2]}."


class Gated(ScriptedProvider):
    """Tells when it is asked, and answers when it is let."""

    def __init__(self, then: Any = answer) -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        super().__init__(then=then, gate=self.go)

    async def complete(self, request: ChatRequest, **kwargs: Any) -> Any:
        self.asked.set()
        return await super().complete(request, **kwargs)


class Down(ScriptedProvider):
    """Fails with this error until it is mended."""

    def __init__(self, error: Exception) -> None:
        super().__init__(then=self._say)
        self._error: Exception | None = error

    def mend(self) -> None:
        """From now on it answers."""
        self._error = None

    def _say(self, request: ChatRequest) -> str:
        if self._error is not None:
            raise self._error
        return answer(request)
