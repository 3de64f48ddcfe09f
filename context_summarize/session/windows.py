"""The size of a request that a provider accepts: the window that it reports, and the requests that it has refused."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cachetools import LRUCache

from context_summarize.background import awaited, end_tasks, in_own_thread, until_done
from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.redaction import traceback_of
from context_summarize.summaries.failures import says_too_large
from context_summarize.tokens.calibration import Meter

logger = logging.getLogger(__name__)

_INFO_SECONDS = 2.0
"""Seconds that a provider has for each of two questions about its window, and before it is asked again."""
_MOST_TOKENS = 10**9
"""A larger budget or window is absurd; any bound of this size does."""
_MOST_PROVIDERS = 8
"""Providers that are kept alive, with their last known windows. Any number of this size does."""


@dataclass(frozen=True, slots=True)
class Window:
    """A model's window in tokens."""

    context: int
    output: int
    asked: int | None = None
    """Tokens of output that a request asks for, if the provider reports that."""

    def budget(self, safety_margin: int) -> int:
        """Returns the tokens for a request: the window less output and margin.

        No request asks for all that a model can write. So if `asked` is not known, at most a quarter of the window is
        kept free for output. If output and margin leave nothing, the request gets half of the window. A larger window
        never gives less than a smaller one.
        """
        kept_free = (self.asked or min(self.output, self.context // 4)) + safety_margin
        return max(1, self.context - kept_free, min(self.context, kept_free) // 2)


def _read(source: object, name: str) -> int | None:
    """Returns a positive number of an object or a mapping; None if it has none of this name, or an absurd one."""
    value = source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
    return value if type(value) is int and 0 < value <= _MOST_TOKENS else None


async def request_budget(
    config: Config, token_budget: int | None, provider: object, windows: Windows | None = None
) -> int:
    """Returns the tokens that the next request may hold.

    `token_budget` if given; else the provider's window; else `max_tokens`; else 200,000. `max_tokens`, when set, is
    always an upper bound. `windows` remembers what providers said before.

    Raises:
        TypeError, ValueError: `token_budget` is no whole number, negative, or absurdly large.
    """
    if isinstance(given := token_budget, bool) or not isinstance(given, int | None):
        raise TypeError(f"token_budget must be a whole number of tokens, got {given!r}; None or 0 for the window's")
    if given is not None and not 0 <= given <= _MOST_TOKENS:
        raise ValueError(f"token_budget must be 0 to {_MOST_TOKENS:,} tokens, got {given}; None or 0 for the window's")
    budget = given
    if not budget and provider is not None:
        window = await (windows or Windows(config)).of(provider)
        budget = window.budget(config.safety_margin) if window else None
    budget = budget or config.max_tokens or DEFAULT_BUDGET
    return min(budget, config.max_tokens or budget)


class _Question:
    """One method of a provider that may report its window, and its last answer."""

    def __init__(self, provider: object, method: str) -> None:
        self._provider, self._method = provider, method
        self._window: Window | None = None
        self.asking: asyncio.Task[None] | None = None
        """The last call. While it runs, however long that is, no other is made."""
        self._asked_at = -math.inf
        """Seconds of the event loop's clock."""

    async def answer(self, config: Config, is_cancelled: Callable[[], bool]) -> Window | None:
        """Returns the window that the method reports, or has reported last; None if it has reported none."""
        now = asyncio.get_running_loop().time()
        if (self.asking is None or self.asking.done()) and now >= self._asked_at + _INFO_SECONDS:
            self._asked_at = now
            self.asking = asyncio.create_task(self._ask(config), name="context-summarize:window")
        if self.asking is not None and not self.asking.done() and now < self._asked_at + _INFO_SECONDS:
            await until_done({self.asking}, self._asked_at + _INFO_SECONDS - now, is_cancelled)
            if not (self.asking.done() or is_cancelled()):
                name = type(self._provider).__name__
                logger.warning("%s of provider %r does not answer; its last known window counts", self._method, name)
        return self._window

    async def _ask(self, config: Config) -> None:
        before, name = self._window, type(self._provider).__name__
        try:
            self._window = await awaited(self._asked)
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            self._window = None
            trace = traceback_of(error, config.redact)
            logger.warning("%s of provider %r failed, so its window is unknown: %s", self._method, name, trace)
        margin = config.safety_margin
        if self._window and self._window != before and self._window.context < margin:
            text = "safety_margin is %d, more than the window of %r (%d tokens); a request may fill half of the window"
            logger.error(text, margin, name, self._window.context)

    async def _asked(self) -> Window | None:
        method = getattr(self._provider, self._method, None)
        if not callable(method):
            return None
        # Methods that are no coroutines may block.
        answer = method() if inspect.iscoroutinefunction(method) else await in_own_thread(method)
        source = await answer if inspect.isawaitable(answer) else answer
        if self._method == "get_info":
            source = getattr(source, "defaults", None)
        if not (context := _read(source, "context_window")):
            return None
        # Under this name Amplifier's providers keep the output that they ask for if a request names no figure.
        asked = _read(self._provider, "max_tokens")
        return Window(context, _read(source, "max_output_tokens") or 0, asked)


class Windows:
    """The windows of a session's providers. Each one is asked at most once in two seconds; its last answer is kept.

    `get_model_info()`, sync or async, reports the window, else `get_info().defaults`. A provider that raises, or takes
    longer for an answer, fails no request. While it hangs it is not asked again.
    """

    def __init__(self, config: Config, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._config = config
        self._is_cancelled = is_cancelled
        self._questions = LRUCache[int, tuple[_Question, ...]](_MOST_PROVIDERS)
        """By `id()` of the provider, which its questions keep alive."""

    async def of(self, provider: object) -> Window | None:
        """Returns the window of a provider; None if it has none. While it does not answer, its last window counts."""
        if (questions := self._questions.get(id(provider))) is None:
            questions = (_Question(provider, "get_model_info"), _Question(provider, "get_info"))
            self._questions[id(provider)] = questions
        for question in questions:
            if (window := await question.answer(self._config, self._is_cancelled)) is not None:
                return window
        return None

    async def close(self) -> None:
        """Ends the questions that are still under way."""
        asked = [question.asking for questions in self._questions.values() for question in questions]
        await end_tasks([task for task in asked if task is not None])


_SMALLER = 0.9
"""Share of a refused request that the next one may take."""
_LIMIT = re.compile(
    r"(?:context|maximum (?:number of tokens|model length|prompt length)|limit of|>)[^\d]{0,40}(\d[\d,]{3,11})(?![\d,])"
)
"""The window that a refusal names, as in "maximum context length is 65536 tokens" or "208310 tokens > 200000"."""


@dataclass(slots=True)
class _Refused:
    """The bound that a provider's refusals set."""

    most: int
    """The next requests may take this many of our own tokens."""
    named: int | None = None
    """The window that a refusal has named."""
    is_firm: bool = False
    """True once the provider has refused twice."""
    has_answered: bool = False
    """True once it has answered since the first refusal."""


class Refusals:
    """Bounds for each provider of a session, learnt from `llm:response` and the loop's own `provider:error`.

    These events name no request. So a refusal counts for the last request that was served and has no answer yet. The
    next request checks this: if the host's request has been answered meanwhile, or its loop has reported another
    failure, the refused request was a helper's. Sizes are in our own tokens: corrections of the measuring do not
    change them.
    """

    def __init__(self, meter: Meter, safety_margin: int) -> None:
        self._meter, self._margin = meter, safety_margin
        self._provider: object = None
        """The provider of the last request."""
        self._refused: dict[int, _Refused] = {}
        """By `id()` of the provider, which lives as long as its session."""
        self._open: tuple[int, str] | None = None
        """The last refusal, while it may be a helper's: the size of the request, and the words."""

    def observe(self, response: Mapping[str, Any], *, by_loop: bool) -> None:
        """Takes in an `llm:response` of a call that is not ours, or a `provider:error` of the loop.

        Callers pass the usage to the meter afterwards.
        """
        if (size := self._meter.unanswered) is None:
            return
        if by_loop or response.get("status") == "error":
            words = f"{response.get('error_type')} {response.get('error')}".lower()
            if says_too_large(words):
                self._open = size, words
            elif by_loop:
                self._meter.answered()
            return
        usage = response.get("usage")
        figures = usage if isinstance(usage, dict) and usage.get("input_tokens") else None  # some servers report none
        if figures is None or self._meter.is_of_view(figures):
            if figures is None:
                self._meter.answered()
            self._open = None
            if (refused := self._refused.get(id(self._provider))) is not None:
                refused.has_answered = True

    async def bounded(self, budget: int, provider: object, windows: Windows) -> int:
        """Returns the budget of the next request, at most what the provider's refusals allow."""
        if self._open is not None and self._open[0] == self._meter.unanswered:
            self._bind(*self._open)
        self._provider, self._open = provider, None
        if (refused := self._refused.get(id(provider))) is None:
            return budget
        window = await windows.of(provider)
        if (named := refused.named) is not None:
            window = replace(window, context=min(window.context, named)) if window else Window(named, named)
            budget = min(budget, window.budget(self._margin))
        # A passing fault may have caused the first refusal. So where the window is named, it is tried once more.
        is_tried = window is not None and refused.has_answered and not refused.is_firm
        return budget if is_tried else min(budget, self._meter.correct(refused.most))

    def _bind(self, size: int, words: str) -> None:
        correct, provider = self._meter.correct, self._provider
        most = max(1, self._meter.invert(int(_SMALLER * correct(size))))
        if (refused := self._refused.get(id(provider))) is None:
            refused = self._refused[id(provider)] = _Refused(most)
        else:
            refused.most, refused.is_firm = min(most, refused.most), True
        for limit in _LIMIT.findall(words):
            refused.named = int(limit.replace(",", ""))
        logger.log(
            logging.INFO if refused.is_firm else logging.WARNING,
            "%r has refused a request of %d tokens for its length, so the next ones are smaller (%s); max_tokens, or "
            "the window that the provider reports, may be too large",
            type(provider).__name__,
            correct(size),
            f"it takes {refused.named}" if refused.named else f"at most {correct(refused.most)}",
        )
