"""A provider that answers with text of the length asked for, at once or so many requests of the session later."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import Any

from context_summarize.testing import ScriptedProvider

_WORDS = re.compile(r"at most (\d+) words")


class RequestClock:
    """Counts the session's requests, and wakes who waits for one of them."""

    def __init__(self) -> None:
        self.now = 0
        self._waiting: deque[tuple[int, asyncio.Event]] = deque()

    def tick(self) -> None:
        """One request has been served."""
        self.now += 1
        while self._waiting and self._waiting[0][0] <= self.now:
            self._waiting.popleft()[1].set()

    async def after(self, requests: int) -> None:
        """Until so many requests more have been served; every waiter waits for as many."""
        if requests:
            event = asyncio.Event()
            self._waiting.append((self.now + requests, event))
            await event.wait()


def pace(window: int, share: float, tokens_per_request: float) -> int:
    """Requests in which a session grows by this share of the window."""
    return round(share * window / tokens_per_request)


def summary(number: int, words: int) -> str:
    """A summary of about half so many words; each one differs."""
    lines = [f"Goal: case {number} is looked after."]
    lines += [f"Step {at} of case {number} was done for the customer." for at in range(max(1, words // 20))]
    return "\n".join(lines)


def make_provider(window: int, clock: RequestClock, late: int) -> ScriptedProvider:
    """A provider of this window whose answers come `late` requests after the question."""
    asked = 0

    async def answer(request: Any) -> str:
        nonlocal asked
        asked += 1
        number = asked
        provider.requests.clear()  # what it keeps would count as memory of the session
        provider.options.clear()
        found = _WORDS.search(str(request.messages[0].content))
        await clock.after(late)
        return summary(number, int(found.group(1)) if found else 300)

    provider = ScriptedProvider(then=answer, context_window=window, max_output_tokens=4_000)
    return provider
