"""The faults of a provider, a provider that has them, and a store that knows which of its calls were of use."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from amplifier_core.llm_errors import (
    AbortError,
    AuthenticationError,
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

from context_summarize.core.nodes import Summary
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider

LABEL = re.compile(r"call(\d{6})x")
GOOD = "Goal: orders were looked up. State: found."
HANGS, DEAF, ROOM, SIZE, SLOW, UNASKED = object(), object(), object(), object(), object(), object()
"""Behaviours that take more than a value: see `Hostile.complete`."""
WORDY = "It was looked up. " * 60
CHAT = "I'm glad to assist you with your request. Can you please tell me more?"
ABOUT_ELSE = (
    "The recipe begins with butter, flour, sugar and cinnamon; the oven warms slowly while apples are peeled, sliced "
    "and arranged in circles over pastry, brushed with apricot jam, sprinkled with almonds and baked until golden; "
    "brown crumbs and vanilla cream and fresh berries go with it."
)
"""Long enough to be judged by its words."""
SECONDS = 20.0
"""What a slow answer takes."""


class Odd:
    """An answer whose parts raise when they are read."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def content(self) -> Any:
        """Nothing but the error."""
        raise self._error


class Unreadable(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def used(**usage: Any) -> Any:
    """A good answer with this usage."""
    return SimpleNamespace(content="Goal: orders were looked up. State: done.", usage=SimpleNamespace(**usage))


def cut(text: str) -> Any:
    """An answer that was cut off."""
    return SimpleNamespace(content=text, finish_reason="length")


@dataclass(frozen=True, slots=True)
class Fault:
    """One behaviour of a provider."""

    name: str
    ways: tuple[Any, ...]
    """What it does at each call, again and again; see `Hostile`."""


LASTING = (
    Fault("none", (GOOD,)),
    Fault("503 or a lost connection", (ProviderUnavailableError("503"), ConnectionResetError("reset"))),
    Fault("429, without and with a time to wait", (RateLimitError("slow"), RateLimitError("slow", retry_after=5))),
    Fault("429 with an absurd time to wait", (RateLimitError("slow", retry_after=float("nan")),)),
    Fault("its own timeout", (LLMTimeoutError("late"),)),
    Fault("401", (AuthenticationError("401"),)),
    Fault("a spent quota", (QuotaExceededError("spent"),)),
    Fault("404, an unknown model", (NotFoundError("no such model"),)),
    Fault("400, a wrong request", (InvalidRequestError("bad schema"),)),
    Fault("a blocked input", (ContentFilterError("blocked"),)),
    Fault("an abort", (AbortError("aborted"),)),
    Fault("an error without a class of its own", (LLMError("odd", retryable=True), ValueError("no JSON"))),
    Fault("an error whose text cannot be read", (Unreadable(),)),
    Fault("input too large, always", (ContextLengthError("too many tokens"),)),
    Fault("input too large above 3,000 characters", (SIZE,)),
    Fault("the length of every answer is refused", (InvalidRequestError("max_output_tokens must be less than 8"),)),
    Fault("answers above 40 tokens are refused, no limit named", (ROOM,)),
    Fault("raises CancelledError", (asyncio.CancelledError(),)),
    Fault("raises SystemExit or GeneratorExit", (SystemExit(1), GeneratorExit())),
    Fault("an answer that raises when it is read", (Odd(ValueError("x")), Odd(asyncio.CancelledError()))),
    Fault("an answer of a wrong type", (None, 5, b"bytes", {"content": "text"})),
    Fault("empty answers", ("", SimpleNamespace(content=[]))),
    Fault("chat", (CHAT, "I'm sorry, I can't.")),
    Fault("summaries of something else", (ABOUT_ELSE,)),
    Fault("lone surrogates", ("bad \ud800 text about orders",)),
    Fault("two million characters", ("x" * 2_000_000,)),
    Fault("rambling, always cut off", (cut(WORDY),)),
    Fault("cut off before the first sentence", (cut("Goal"),)),
    Fault("absurd usage", (used(cost_usd="1e999999", input_tokens=10**400), used(output_tokens=-5, cost_usd="nan"))),
    Fault("slow: 20 s for each answer", (SLOW,)),
    Fault("hangs", (HANGS,)),
    Fault("hangs and ignores that it is cancelled", (DEAF,)),
    Fault("get_model_info hangs", (UNASKED,)),
)
"""Faults that last: a provider has one of them from the first call to the last."""
CHANGING = (
    Fault("four errors, then a good answer", (*[ProviderUnavailableError("503")] * 4, GOOD)),
    Fault("two empty answers, then a good one", ("", "", GOOD)),
    Fault("a good answer, then an error", (GOOD, ProviderUnavailableError("503"))),
    Fault("one fault after the other", ("", ValueError("x"), CHAT, HANGS, None, cut(WORDY), asyncio.CancelledError())),
)
"""Providers whose calls do not all go alike."""
FAULTS = LASTING + CHANGING


class Hostile(ScriptedProvider):
    """Behaves in these ways, one after the other, again and again. Every text that it writes names its call.

    An error is raised, everything else returned. `HANGS` never answers; `DEAF` does neither, and ignores that it is
    cancelled; `ROOM` refuses answers above 40 tokens; `SIZE` refuses inputs above 3,000 characters; `SLOW` takes 20 s;
    `UNASKED` answers well and never tells its window.
    """

    def __init__(self, ways: Sequence[Any]) -> None:
        super().__init__(context_window=6_000, max_output_tokens=500)
        self._ways = ways
        self.served = 0
        """Requests of the host so far."""
        self.made: list[int] = []
        """How many requests had been served when each call was made."""
        self.shown: list[set[int]] = []
        """The calls whose answers each call was shown."""
        self.released = asyncio.Event()
        self.deaf = 0

    async def get_model_info(self) -> Any:
        """The window, unless that is what hangs."""
        if UNASKED in self._ways:
            await self.released.wait()
        return self.get_info().defaults

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        """The next way."""
        call = self.calls
        way = self._ways[call % len(self._ways)]
        self.requests.append(request)
        self.made.append(self.served)
        self.shown.append(named(str(request.messages)))
        assert (request.max_output_tokens or 0) <= self.max_output_tokens
        if isinstance(way, BaseException):
            raise way
        if way is HANGS:
            await self.released.wait()
        if way is SLOW:
            await asyncio.sleep(SECONDS)
        if way is DEAF:
            await self._deafly()
        if way is ROOM and request.max_output_tokens > 40:
            raise InvalidRequestError("max_tokens is too large; the maximum is lower")
        if way is SIZE and len(str(request.messages)) > 3_000:
            raise InvalidRequestError("prompt is too long")
        return _labelled_answer(GOOD if way in (ROOM, SIZE, SLOW, UNASKED) else way, call)

    async def _deafly(self) -> None:
        while not self.released.is_set():
            self.deaf += 1
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue


def _labelled_answer(way: Any, call: int) -> Any:
    if isinstance(way, str):
        return SimpleNamespace(content=labelled(way, call))
    if not isinstance(way, Odd) and isinstance(getattr(way, "content", None), str):
        return SimpleNamespace(**{**vars(way), "content": labelled(way.content, call)})
    return way


def labelled(text: str, call: int) -> str:
    """The text with the number of its call, in its first sentence; an empty one says nothing."""
    head, dot, rest = text.partition(".")
    return f"{head} call{call:06}x{dot}{rest}" if text else text


def named(text: str) -> set[int]:
    """The calls that a text names."""
    return {int(number) for number in LABEL.findall(text)}


class Stored(MemoryStore):
    """A store that notes what each summary names, and after how many requests it came."""

    def __init__(self, provider: Hostile) -> None:
        super().__init__()
        self._provider = provider
        self.came: list[tuple[int, set[int]]] = []

    async def put(self, summary: Summary) -> None:
        """Keep a summary, and note it."""
        self.came.append((self._provider.served, named(summary.text)))
        await super().put(summary)


def used_calls(provider: Hostile, store: Stored) -> set[int]:
    """The calls whose answers are in a stored summary, or that such a call was shown: pieces of a large input."""
    found: set[int] = set().union(*(names for _, names in store.came))
    reached: set[int] = set()
    while found - reached:
        reached |= found
        found = set().union(*(provider.shown[call] for call in reached))
    return reached
