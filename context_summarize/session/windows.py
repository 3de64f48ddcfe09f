"""How much a provider takes: the windows that providers report, and the requests that they have refused."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from context_summarize.background import guarded, in_daemon, within
from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.redaction import traceback_of
from context_summarize.summaries.failures import says_too_large
from context_summarize.tokens.calibration import Meter

logger = logging.getLogger(__name__)

_INFO_SECONDS = 2.0
"""Seconds that a provider has for each of two questions about its window."""
_PAUSE, _PAUSE_AFTER_HANG = 1.0, 60.0
"""Seconds for which a provider is not asked again: after an answer, and after a question without one."""
_MOST_PROVIDERS = 8
"""Providers whose last known windows are remembered."""
_SMALLER = 0.9
"""Share of a refused request that the next one may take."""
_Asked: TypeAlias = tuple[int, str | None]
"""Identity of a provider, which lives as long as its session; and the model that was asked."""


@dataclass(frozen=True, slots=True)
class Window:
    """A model's window in tokens."""

    context: int
    output: int
    asked: int | None = None
    """Tokens of output that a request asks for, where the provider says that."""

    def budget(self, safety_margin: int) -> int:
        """Tokens for a request: what output and margin leave; half the window where they leave nothing.

        No request asks for all that a model can write: where it is not known, at most a quarter of the window is kept
        free. A larger window never gives less than a smaller one.
        """
        kept_free = (self.asked or min(self.output, self.context // 4)) + safety_margin
        return max(1, self.context - kept_free, min(self.context, kept_free) // 2)


def _read(source: Any, name: str) -> int | None:
    """A positive number of an object or a mapping; None where it has none."""
    value = source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
    return value if type(value) is int and value > 0 else None


async def request_budget(
    config: Config, token_budget: int | None, provider: Any | None, windows: Windows | None = None
) -> int:
    """Tokens that the next request may hold.

    `token_budget` if given; else the provider's window; else `max_tokens`; else 200,000. `max_tokens`, when set, is
    always an upper bound. `windows` remembers what providers said before.

    Raises:
        TypeError, ValueError: `token_budget` is no whole number, or negative.
    """
    if isinstance(given := token_budget, bool) or not isinstance(given, int | None):
        raise TypeError(f"token_budget must be a whole number of tokens, got {given!r}; None or 0 for the window's")
    if given is not None and given < 0:
        raise ValueError(f"token_budget must be 0 or more tokens, got {given}; None or 0 for the window's")
    budget = given or None
    if budget is None and provider is not None:
        window = await (windows or Windows(config)).of(provider)
        budget = window.budget(config.safety_margin) if window else None
    if budget is None:
        budget = config.max_tokens or DEFAULT_BUDGET
    return min(budget, config.max_tokens) if config.max_tokens else budget


@dataclass(slots=True)
class _Known:
    """What one provider has said of its window."""

    provider: Any
    window: Window | None = None
    ask_again_at: float = -math.inf
    """Seconds of the event loop's clock."""
    asked: dict[str, Future[Any] | asyncio.Task[Any]] = field(default_factory=dict)
    """The last call of each method: while it hangs, the method is not called again."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is asked: requests that come meanwhile have the same answer."""


class Windows:
    """The windows of a session's providers: each is asked at most once a second; what it said last is remembered.

    `get_model_info()`, sync or async, tells it, else `get_info().defaults`. A provider that raises, or takes longer
    than two seconds for an answer, is no reason to lose a request; while it hangs it is not asked again.
    """

    def __init__(self, config: Config, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._config = config
        self._is_cancelled = is_cancelled
        self._known: list[_Known] = []

    async def of(self, provider: Any) -> Window | None:
        """The window of a provider; None when it has none. While it does not answer, the last known one counts."""
        known = next((known for known in self._known if known.provider is provider), None)
        if known is None:
            known = _Known(provider)
            self._known = [*self._known[1 - _MOST_PROVIDERS :], known]
        async with known.turn:
            if asyncio.get_running_loop().time() >= known.ask_again_at:
                await self._ask(known)
        return known.window

    async def _ask(self, known: _Known) -> None:
        before, now, name = known.window, asyncio.get_running_loop().time(), type(known.provider).__name__
        window: Window | None = None
        pause = _PAUSE
        for method, pick in (("get_model_info", None), ("get_info", "defaults")):
            if (call := known.asked.get(method)) is not None and not call.done():
                pause = _PAUSE_AFTER_HANG
                continue
            try:
                asking = partial(self._asked, known, method, pick)
                window = window or await within(asking, _INFO_SECONDS, self._is_cancelled)
            except Exception as error:  # noqa: BLE001 - logged without its secrets
                if self._is_cancelled():
                    return
                if isinstance(error, TimeoutError):
                    pause = _PAUSE_AFTER_HANG
                told = traceback_of(error, self._config.redact)
                logger.warning("%s of provider %r failed, so its window is unknown: %s", method, name, told)
        known.window = window or (before if pause == _PAUSE_AFTER_HANG else None)
        known.ask_again_at = now + pause
        margin = self._config.safety_margin
        if known.window and known.window != before and known.window.context < margin:
            what = "safety_margin is %d, more than the window of %r (%d tokens); a request may fill half of the window"
            logger.error(what, margin, name, known.window.context)

    async def _asked(self, known: _Known, name: str, pick: str | None) -> Window | None:
        method = guarded(partial(getattr, known.provider, name, None))
        if not callable(method):
            return None
        if inspect.iscoroutinefunction(method):
            answer = method()
        else:  # it may block
            known.asked[name] = call = in_daemon(method)
            answer = await asyncio.wrap_future(call)
        if inspect.isawaitable(answer):
            if (task := asyncio.current_task()) is not None:
                known.asked[name] = task  # it may ignore its cancellation
            answer = await answer
        return _window_in(known.provider, answer, pick)


def _window_in(provider: Any, answer: Any, pick: str | None) -> Window | None:
    source = answer if pick is None else getattr(answer, pick, None)
    context, output = _read(source, "context_window"), _read(source, "max_output_tokens")
    if not context:
        return None
    # Amplifier's providers keep under this name what they ask for where the request itself names no figure.
    asked = guarded(lambda: _read(provider, "max_tokens"))
    return Window(context, output or 0, asked)


def _told(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """The usage of a response; empty where a server tells none, as providers show it in several ways."""
    usage = response.get("usage")
    return usage if isinstance(usage, dict) and usage.get("input_tokens") else {}


# --- refused requests ------------------------------------------------------------------------------------------------


class Refusals:
    """Bounds for each provider and model of a session, learnt from `llm:response`.

    A response names no request, so it is taken for that of the request that was served last and has no answer yet.
    Whose refusal it was shows when the next request is prepared: if the host's own has been answered meanwhile, the
    refused one was a helper's. Sizes are tokens of ours, which a later correction of the measuring leaves as they are.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._provider: Any = None
        """Who was asked last."""
        self._models: dict[int, str | None] = {}
        """The model that answered or refused last, for each provider."""
        self._refused: dict[_Asked, tuple[int, int]] = {}
        """The size of the refused request, and the bound that follows."""
        self._open: tuple[_Asked, int] | None = None
        """The last refusal, while it may be a helper's."""

    def heard(self, response: Mapping[str, Any]) -> None:
        """Take in an `llm:response` that is none of our own calls'. Usage is observed afterwards."""
        size, model = self._meter.unanswered, response.get("model")
        if size is None:
            return
        asked = (id(self._provider), model if isinstance(model, str) else None)
        if response.get("status") == "error":
            if says_too_large(f"{response.get('error_type')} {response.get('error')}"):
                self._open = (asked, size)
        elif not (usage := _told(response)) or self._meter.is_of_view(usage):
            if not usage:
                self._meter.answered()
            self._models[asked[0]], self._open = asked[1], None
            if size >= self._refused.get(asked, (size + 1, 0))[0]:
                del self._refused[asked]

    def bound(self, provider: Any) -> int | None:
        """Tokens that the next request to a provider may take; None while it has refused nothing."""
        if self._open is not None and self._open[1] == self._meter.unanswered:
            self._bind(*self._open)
        self._provider, self._open = provider, None
        bound = self._refused.get((id(provider), self._models.get(id(provider))))
        return None if bound is None else self._meter.correct(bound[1])

    def _bind(self, asked: _Asked, size: int) -> None:
        correct = self._meter.correct
        bound = max(1, self._meter.invert(int(_SMALLER * correct(size))))
        logger.log(
            logging.INFO if asked in self._refused else logging.WARNING,
            "%r, model %s, has refused a request of %d tokens for its length; the next ones take at most %d. "
            "max_tokens, or the window that the provider reports, is too large",
            type(self._provider).__name__,
            asked[1],
            correct(size),
            correct(bound),
        )
        self._models[asked[0]], self._refused[asked] = asked[1], (size, bound)
