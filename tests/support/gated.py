"""Providers for tests: one that answers when it is let, one that is mended, one that shortens what it is shown."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from amplifier_core.message_models import ChatRequest

from context_summarize.testing import ScriptedProvider

SUMMARY = "Goal: look up orders."


def answer(request: ChatRequest) -> str:
    """A summary that differs from part to part and is the same for the same part: it names the fence."""
    return f"{SUMMARY} Part {str(request.messages[1].content).split()[2]}."


def question(request: ChatRequest) -> str:
    """What the provider was shown, whole."""
    return "\n".join(str(message.content) for message in request.messages)


def questions(provider: ScriptedProvider) -> list[str]:
    """What a provider was shown, call by call: equal texts are equal keys."""
    return list(map(question, provider.requests))


async def settle() -> None:
    """Let what is ready run."""
    for _ in range(300):
        await asyncio.sleep(0)


class Gated(ScriptedProvider):
    """Tells when it is asked, and answers when it is let."""

    def __init__(self, then: Any = answer, **settings: Any) -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        super().__init__(then=then, gate=self.go, **settings)

    async def complete(self, request: ChatRequest, **kwargs: Any) -> Any:
        self.asked.set()
        return await super().complete(request, **kwargs)


class Gate:
    """Makes a summary, when it is let; for providers that take a function."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()

    async def __call__(self, request: ChatRequest) -> str:
        self.asked.set()
        await self.go.wait()
        return answer(request)


def shortened(request: ChatRequest) -> str:
    """A summary of about the length that was asked for: words of the transcript, none twice."""
    asked = re.search(r"at most (\d+) words", str(request.messages[0].content))
    words = sorted(set(re.findall(r"\w+", str(request.messages[1].content))))
    room = min(int(asked[1]) if asked else 100, len(words) * 2 // 3)
    return f"{answer(request)} State: {' '.join(words[:room])}."


class Shortening(ScriptedProvider):
    """Answers with words of what it is shown, about as many as were asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(then=shortened, **settings)
