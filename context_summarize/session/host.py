"""What the host's objects say about themselves: windows of providers, who summarises, and what is under way."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from context_summarize.background import guarded, within
from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.core.frames import NAME as RECALL
from context_summarize.notes.sentences import shortened
from context_summarize.redaction import traceback_of
from context_summarize.summaries.request import Target

logger = logging.getLogger(__name__)

_INFO_SECONDS = 2.0
"""Seconds that a provider has for each of two questions about its window."""
_PAUSE, _PAUSE_AFTER_HANG = 1.0, 60.0
"""Seconds for which a provider is not asked again: after an answer, and after a question without one."""
_MOST_PROVIDERS = 8
"""Providers whose last known windows are remembered."""
_PREFIX = "provider-"
_OPERATIONS = "context.active_operations"
"""Registered by loops with background jobs (amplifier-module-loop-live): a callable that lists them."""
_MOST_OPERATIONS = 20
_FIELDS = ("tool", "status", "job_id", "job", "call_id", "call")


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


async def provider_window(provider: Any) -> Window | None:
    """The window of a provider: `get_model_info()`, sync or async, then `get_info().defaults`; None when it has none.

    A provider that raises, or takes longer than two seconds for an answer, is no reason to lose a request.
    """
    return await Windows(Config()).of(provider)


def given_budget(given: object) -> int | None:
    """Tokens that the host gives a request; None where it leaves them to the window, by None or 0.

    Raises:
        TypeError, ValueError: it is no whole number, or negative.
    """
    if isinstance(given, bool) or not isinstance(given, int | None):
        raise TypeError(f"token_budget must be a whole number of tokens, got {given!r}; None or 0 for the window's")
    if given is not None and given < 0:
        raise ValueError(f"token_budget must be 0 or more tokens, got {given}; None or 0 for the window's")
    return given or None


async def request_budget(
    config: Config, token_budget: int | None, provider: Any | None, windows: Windows | None = None
) -> int:
    """Tokens that the next request may hold.

    `token_budget` if given; else the provider's window; else `max_tokens`; else 200,000. `max_tokens`, when set, is
    always an upper bound. `windows` remembers what providers said before.

    Raises:
        TypeError, ValueError: as `given_budget`.
    """
    budget = given_budget(token_budget)
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


class Windows:
    """The windows of a session's providers: each is asked at most once a second; what it said last is remembered."""

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
        if asyncio.get_running_loop().time() >= known.ask_again_at:
            await self._ask(known)
        return known.window

    async def _ask(self, known: _Known) -> None:
        before, now, pause = known.window, asyncio.get_running_loop().time(), _PAUSE
        window: Window | None = None
        for name, pick in (("get_model_info", None), ("get_info", "defaults")):
            try:
                asking = partial(self._asked, known.provider, name, pick)
                window = window or await within(asking, _INFO_SECONDS, self._is_cancelled)
            except Exception as error:  # noqa: BLE001 - logged without its secrets
                if self._is_cancelled():
                    return
                if isinstance(error, TimeoutError):
                    pause = _PAUSE_AFTER_HANG
                self._say(known, name, error)
        known.window = window or (before if pause == _PAUSE_AFTER_HANG else None)
        known.ask_again_at = now + pause
        margin = self._config.safety_margin
        if known.window and known.window != before and known.window.context < margin:
            what = "safety_margin is %d, more than the window of %r (%d tokens); a request may fill half of the window"
            logger.error(what, margin, type(known.provider).__name__, known.window.context)

    async def _asked(self, provider: Any, name: str, pick: str | None) -> Window | None:
        method = guarded(partial(getattr, provider, name, None))
        if not callable(method):
            return None
        is_coroutine = inspect.iscoroutinefunction(method)
        answer = method() if is_coroutine else await asyncio.to_thread(guarded, method)  # it may block
        if inspect.isawaitable(answer):
            answer = await answer
        return _window_in(provider, answer, pick)

    def _say(self, known: _Known, what: str, error: Exception) -> None:
        name, told = type(known.provider).__name__, traceback_of(error, self._config.redact)
        logger.warning("%s of provider %r failed, so its window is unknown: %s", what, name, told)


def _window_in(provider: Any, answer: Any, pick: str | None) -> Window | None:
    source = answer if pick is None else getattr(answer, pick, None)
    context, output = _read(source, "context_window"), _read(source, "max_output_tokens")
    if not context:
        return None
    # Amplifier's providers keep under this name what they ask for where the request itself names no figure.
    asked = guarded(lambda: _read(provider, "max_tokens"))
    return Window(context, output or 0, asked)


class Providers:
    """The providers of a session: those mounted, and the one seen last."""

    def __init__(self, coordinator: Any | None, config: Config) -> None:
        self._coordinator = coordinator
        self._config = config
        self._last: Any | None = None
        self._warned = False
        self.windows = Windows(config, self.is_cancelled)

    def is_cancelled(self) -> bool:
        """True while the host has cancelled what is running."""
        return bool(getattr(getattr(self._coordinator, "cancellation", None), "is_cancelled", False))

    def mounted(self) -> dict[str, Any]:
        """Providers by name; empty before the session is ready and without a coordinator."""
        if self._coordinator is None:
            return {}
        found = self._coordinator.get("providers")
        return dict(found) if isinstance(found, Mapping) else {}

    def offers_recall(self) -> bool:
        """True if the model can read summarised messages back, by the setting or by the tool's own module."""
        tools = None if self._coordinator is None else self._coordinator.get("tools")
        return self._config.recall_tool or (isinstance(tools, Mapping) and RECALL in tools)

    def seen(self, provider: Any | None) -> Any | None:
        """The provider of this request: the one passed, else the last seen, else the first mounted."""
        if provider is not None:
            self._last = provider
        if self._last is not None:
            return self._last
        return next(iter(self.mounted().values()), None)

    async def summariser(self) -> Target | None:
        """Who writes summaries, and with which model; None = nobody.

        `summary_provider` if it is mounted; else the provider of the request, and not with a model of another one.
        """
        provider, model, mounted = self.seen(None), self._config.summary_model, self.mounted()
        if self._config.summary_provider is not None:
            named = self._named(mounted)
            if named is None and mounted:
                self.check()
            provider, model = (provider, None) if named is None else (named, model)
        if provider is None:
            return None
        window = await self.windows.of(provider)
        room, output = (window.context, window.output or None) if window else (None, None)
        return Target(provider, _name_of(provider, mounted), model, room, output)

    def _named(self, mounted: Mapping[str, Any]) -> Any | None:
        """The provider that `summary_provider` means, if there is one."""
        if not mounted and self._last is not None:
            mounted = {_name_of(self._last, {}): self._last}
        return find_provider(self._config.summary_provider or "", mounted)

    def check(self) -> None:
        """Say once, as an error in the log, when `summary_provider` names nothing mounted."""
        name, model, mounted = self._config.summary_provider, self._config.summary_model, self.mounted()
        if name is None or self._warned or self._named(mounted) is not None:
            return
        self._warned = True
        logger.error(
            "summary_provider %r is not mounted (mounted: %s); the session's own provider writes the summaries%s",
            name,
            ", ".join(sorted(mounted)) or "none",
            "" if model is None else f", without summary_model {model!r}, which is a model of {name!r}",
        )

    def operations(self) -> tuple[str, ...]:
        """What the host has under way beside the conversation, such as background jobs: a line each, at most twenty.

        Nothing where the host has no list, or it cannot be read.
        """
        look_up = getattr(self._coordinator, "get_capability", None)
        try:
            found = look_up(_OPERATIONS) if callable(look_up) else None
            listed = found() if callable(found) else found
            return tuple(map(_line, listed[:_MOST_OPERATIONS])) if isinstance(listed, list | tuple) else ()
        except Exception as error:  # noqa: BLE001 - a host may raise anything
            logger.warning("the host's list of active operations cannot be read: %s", type(error).__name__)
            return ()


def _name_of(provider: Any, mounted: Mapping[str, Any]) -> str:
    """The name under which a provider is mounted, else its own."""
    own = getattr(provider, "name", None)
    names = (name for name, one in mounted.items() if one is provider)
    return next(names, own if isinstance(own, str) else type(provider).__name__)


def find_provider(name: str, mounted: Mapping[str, Any]) -> Any | None:
    """The provider that users mean by a name; None if none is meant.

    A mount name, which is the instance id where there is one; or a module id, as the mount name or the provider's own
    package tells it; or the name that a provider gives itself. Of several instances of a module the first is taken.
    """
    short = name.removeprefix(_PREFIX)
    package = f"amplifier_module_{name.replace('-', '_')}"
    for place in (name, short):
        if place in mounted:
            return mounted[place]
    for provider in mounted.values():
        if type(provider).__module__.partition(".")[0] == package:
            return provider
    return next((one for one in mounted.values() if getattr(one, "name", None) in (name, short)), None)


def _line(operation: Any) -> str:
    given = operation if isinstance(operation, Mapping) else {"job": operation}
    return shortened(" ".join(str(given[name]) for name in _FIELDS if given.get(name)), 120)
