"""What one request has to keep to, how it is found out, and how often a view that cannot fit may be compacted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from context_summarize.config import Config
from context_summarize.core.limits import Limits
from context_summarize.messages.rows import JsonRow
from context_summarize.session.host import Providers
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.session.windows import Refusals, given_budget, request_budget
from context_summarize.summaries.request import Target
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter

_WINDOW = 10
_MOST = 2
"""If the smallest possible request is still too large, at most two compactions run per ten requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """What the host asks for with a request."""

    token_budget: int | None = None
    """Tokens that the request may hold; None or 0 = what the provider's window gives."""
    provider: Any | None = None
    """Who will be asked; None = whoever was asked last."""
    retained: tuple[str, ...] = ()
    """Contents of reminders that must stand in the request whole."""
    hard_fit: bool = False
    """The provider finds the same request, as it was served, too large for it."""

    def __post_init__(self) -> None:
        given_budget(self.token_budget)  # before anything changes


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request has to keep to."""

    budget: int
    """Tokens, as the provider counts."""
    own: Limits
    """The same in our own tokens."""
    system_prompt: str | None
    """The prompt of the host's factory, which hides stored system rows; None without one."""
    status: JsonRow | None
    """What of the prompt keeps changing, as the row that ends the request; None without such parts."""
    target: Target | None
    """Who writes summaries; None = nobody: fallbacks only."""
    correct: Callable[[int], int]
    """Our tokens → the provider's."""

    def used(self, view_tokens: int) -> int:
        """Tokens of a request with a view of this size, as the provider counts."""
        return self.correct(view_tokens + self.own.system_tokens)

    def beside(self, tokens: int) -> RequestLimits:
        """The limits where rows of this size stand beside the view."""
        room = self.own.view_room - tokens
        return replace(self, own=replace(self.own, view_room=room, base=max(0, min(self.own.base, room))))

    def keeping(self, rows: int) -> RequestLimits:
        """The limits where so many rows more stay verbatim."""
        return replace(self, own=replace(self.own, keep_recent=self.own.keep_recent + rows)) if rows else self


class LimitsReader:
    """Finds out the limits of a request: budget, system prompt, measuring, and who summarises."""

    def __init__(self, config: Config, providers: Providers, system: SystemPrompt, meter: Meter) -> None:
        self._config = config
        self._providers = providers
        self._system = system
        self._meter = meter
        self.refusals = Refusals(meter)
        self.last = RequestOptions()
        """What the host asked for last, as far as it holds for more than one request."""
        self.served: RequestLimits | None = None
        """Those of the last request."""

    async def read(self, wanted: RequestOptions) -> RequestLimits:
        """The limits of the next request; nothing is decided yet."""
        windows, provider = self._providers.windows, self._providers.seen(wanted.provider)
        budget = await request_budget(self._config, wanted.token_budget, provider, windows)
        if (bound := self.refusals.bound(provider)) is not None:
            budget = min(budget, bound)
        await self._system.refresh()
        target = await self._providers.summariser()
        own_budget, cap = max(1, self._meter.invert(budget)), self._config.threshold_tokens
        own_cap = None if cap is None else self._meter.own(cap)
        limits = RequestLimits(
            budget=budget,
            own=own_limits(self._config, own_budget, self._system.tokens, own_cap),
            system_prompt=self._system.text,
            status=self._system.status_row,
            target=target,
            correct=self._meter.correct,
        )
        if not wanted.hard_fit:  # a budget for one request alone
            self.last, self.served = RequestOptions(token_budget=wanted.token_budget), limits
        return limits


def own_limits(config: Config, own_budget: int, system_tokens: int, own_cap: int | None = None) -> Limits:
    """The settings as they bear on a budget in our own tokens.

    Args:
        own_cap: the tokens of `compact_threshold`, if it has any.
    """
    given, room = config.shorten_tool_results, own_budget - system_tokens
    base = max(0, scaled(config, room, own_cap))
    return Limits(
        system_tokens=system_tokens,
        view_room=room,
        base=base,
        keep_recent=config.keep_recent,
        threshold=config.threshold_share,
        target=config.target_usage,
        share=config.share_of_summaries,
        fan_in=config.fan_in,
        shorten_above=min(4_000, max(1, base // 10)) if isinstance(given, str) else given,
        notes_room=int(min(config.notes_share, config.share_of_summaries / 2) * base),
    )


def scaled(config: Config, tokens: int, cap: int | None = None) -> int:
    """So many tokens, or fewer where the threshold is given in tokens: all shares are of these.

    Args:
        cap: the tokens of the threshold in tokens of ours; None = as they were given.
    """
    cap = config.threshold_tokens if cap is None else cap
    return tokens if cap is None else min(tokens, int(cap / config.threshold_share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a request hears from the host."""

    limits: LimitsReader
    system: SystemPrompt
    meter: Meter
    counter: TokenCounter
    is_cancelled: Callable[[], bool]
    """True while the host has cancelled what is running."""
    session_id: str | None = None
    """None without a host."""


class CompactionThrottle:
    """Holds back compactions of a view that cannot fit, whatever the host does between its requests."""

    def __init__(self) -> None:
        self._requests = 0
        self._made_at: deque[int] = deque(maxlen=_MOST)

    def served(self) -> None:
        """One request has been served."""
        self._requests += 1

    def fired(self) -> None:
        """A compaction has been made."""
        self._made_at.append(self._requests)

    def may_fire(self) -> bool:
        """True while fewer than two compactions were made within the last ten requests."""
        return sum(1 for at in self._made_at if self._requests - at < _WINDOW) < _MOST
