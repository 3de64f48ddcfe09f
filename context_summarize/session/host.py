"""What the host's objects say about themselves: the window of a provider, the name under which one is mounted."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_summarize.background import guarded, within
from context_summarize.config import DEFAULT_BUDGET, Config
from context_summarize.core.frames import NAME as RECALL
from context_summarize.redaction import traceback_of
from context_summarize.session.provider_names import find_provider

logger = logging.getLogger(__name__)

_INFO_SECONDS = 2.0
"""Seconds that a provider has to say what its window is."""
_QUICK = 0.05
"""Seconds: a method that returns within them is called without a thread from then on."""
_INFO_PAUSE = 60.0
_MOST_PROVIDERS = 8
"""Providers whose last known windows are remembered."""


@dataclass(frozen=True, slots=True)
class Window:
    """A model's window in tokens."""

    context: int
    output: int

    def budget(self, safety_margin: int) -> int:
        """Tokens for a request: what output and margin leave; half the window where they leave nothing.

        A larger window never gives less: where it leaves a little, it gives what the largest window that leaves nothing
        gives.
        """
        kept_free = self.output + safety_margin
        return max(1, self.context - kept_free, min(self.context, kept_free) // 2)


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _read(source: Any, name: str) -> int | None:
    if isinstance(source, Mapping):
        return _positive(source.get(name))
    return _positive(getattr(source, name, None))


async def provider_window(provider: Any) -> Window | None:
    """The window of a provider: `get_model_info()`, sync or async, then `get_info().defaults`; None when it has none.

    A provider that raises, or takes longer than two seconds, is no reason to lose a request: it is asked the next way,
    or its window is not known.
    """
    return await Windows().of(provider)


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
        window = await (windows or Windows(config.redact)).of(provider)
        budget = window.budget(config.safety_margin) if window else None
    if budget is None:
        budget = config.max_tokens or DEFAULT_BUDGET
    return min(budget, config.max_tokens) if config.max_tokens else budget


@dataclass(slots=True)
class _Known:
    """What one provider has said of its window."""

    provider: Any
    window: Window | None = None
    asked_again_at: float = 0.0
    """Seconds of the event loop's clock: a provider that hung is left alone until then."""
    quick: set[str] = field(default_factory=set)
    """Methods that have returned at once."""


class Windows:
    """The windows of a session's providers: each is asked for every request, and what it said last is remembered.

    A provider that does not answer within two seconds is not asked again for a minute: its last known window counts
    meanwhile. A method that is no coroutine function is called in a thread until it has once returned at once; one that
    blocks only later cannot be bounded.
    """

    def __init__(self, redact: bool | Sequence[str] = True, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._redact = redact
        self._is_cancelled = is_cancelled
        self._known: list[_Known] = []

    async def of(self, provider: Any) -> Window | None:
        """The window of a provider; None when it has none."""
        known = self._entry(provider)
        if asyncio.get_running_loop().time() < known.asked_again_at:
            return known.window
        hung = False
        for ask, pick in (("get_model_info", None), ("get_info", "defaults")):
            try:
                found = _window_in(await _told(known, ask, self._is_cancelled), pick)
            except Exception as error:  # noqa: BLE001 - logged without its secrets
                if isinstance(error, TimeoutError) and self._is_cancelled():
                    return known.window
                hung = hung or isinstance(error, TimeoutError)
                name = type(provider).__name__
                logger.warning(
                    "%s of %r failed; its window is not known: %s", ask, name, traceback_of(error, self._redact)
                )
                if hung:
                    known.asked_again_at = asyncio.get_running_loop().time() + _INFO_PAUSE
                    if known.window is not None:
                        return known.window
                continue
            if found is not None:
                known.window = found
                return found
        if not hung:
            known.window = None
        return known.window

    def _entry(self, provider: Any) -> _Known:
        for known in self._known:
            if known.provider is provider:
                return known
        self._known = [*self._known[1 - _MOST_PROVIDERS :], _Known(provider)]
        return self._known[-1]


async def _told(known: _Known, ask: str, is_cancelled: Callable[[], bool]) -> Any:
    """What a provider says of itself; None where it has no such method. Only what is awaited needs a task."""
    method = guarded(lambda: getattr(known.provider, ask, None))
    if not callable(method):
        return None
    if ask in known.quick or inspect.iscoroutinefunction(method):
        answer = guarded(method)
    else:
        started = time.monotonic()
        answer = await within(lambda: asyncio.to_thread(guarded, method), _INFO_SECONDS, is_cancelled)
        if time.monotonic() - started < _QUICK:
            known.quick.add(ask)
    if inspect.isawaitable(answer):
        told = answer
        answer = await within(lambda: told, _INFO_SECONDS, is_cancelled)
    return answer


def _window_in(answer: Any, pick: str | None) -> Window | None:
    source = answer if pick is None else getattr(answer, pick, None)
    context, output = _read(source, "context_window"), _read(source, "max_output_tokens")
    return Window(context, output or 0) if context else None


def is_cancelled(coordinator: Any | None) -> bool:
    """True while the host has cancelled what is running."""
    return bool(getattr(getattr(coordinator, "cancellation", None), "is_cancelled", False))


class Providers:
    """The providers of a session: those mounted, and the one seen last."""

    def __init__(self, coordinator: Any | None, config: Config) -> None:
        self._coordinator = coordinator
        self._config = config
        self._last: Any | None = None
        self._warned = False
        self.windows = Windows(config.redact, lambda: is_cancelled(coordinator))

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

    def _named(self) -> Any | None:
        """The mounted provider that `summary_provider` means, if there is one."""
        name, mounted = self._config.summary_provider, self.mounted()
        if name is None or name in mounted:
            return mounted.get(name or "")
        if not mounted and self._last is not None:
            mounted = {self.name_of(self._last): self._last}
        config = getattr(self._coordinator, "config", None)
        entries = config.get("providers") if isinstance(config, Mapping) else None
        return find_provider(name, mounted, entries)

    def summary_provider(self) -> Any | None:
        """Who writes summaries: `summary_provider` if it is mounted, else the provider of the request."""
        named = self._named()
        if named is not None:
            return named
        if self.mounted():
            self.check()
        return self.seen(None)

    def summary_model(self) -> str | None:
        """The model to ask for: `summary_model`, unless it is a model of a provider that is not mounted."""
        if self._config.summary_provider is not None and self._named() is None:
            return None
        return self._config.summary_model

    def check(self) -> None:
        """Say once, as an error in the log, when `summary_provider` names nothing mounted."""
        name = self._config.summary_provider
        if name is None or self._warned or self._named() is not None:
            return
        self._warned = True
        model = self._config.summary_model
        logger.error(
            "summary_provider %r is not mounted (mounted: %s); the session's own provider writes the summaries%s",
            name,
            ", ".join(sorted(self.mounted())) or "none",
            "" if model is None else f", without summary_model {model!r}, which is a model of {name!r}",
        )

    def name_of(self, provider: Any) -> str:
        """The name under which a provider is mounted, else its own."""
        for name, mounted in self.mounted().items():
            if mounted is provider:
                return name
        own = getattr(provider, "name", None)
        return own if isinstance(own, str) else type(provider).__name__
