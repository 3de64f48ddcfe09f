"""The limits of one request: the host's options, and the room that they leave for the view."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from context_summarize.config import Config
from context_summarize.core.entries import short_length
from context_summarize.core.limits import Limits
from context_summarize.host_types import Provider

_NOTES_AT = 16_000
"""Tokens of the base up to which the thread takes its share. Beyond it its room grows with the base's square root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The host's options for a request."""

    token_budget: int | None = None
    """Tokens that the request may hold; None or 0 = what the provider's window gives."""
    provider: Provider | None = None
    """The provider of the request; None = the last one."""
    retained: tuple[str, ...] = ()
    """Contents of reminders that the request must show whole."""
    hard_fit: bool = False
    """True if the provider has refused the request that was served last as too large."""

    def __post_init__(self) -> None:
        if self.provider is not None and not callable(getattr(self.provider, "complete", None)):
            raise TypeError(
                f"provider must have complete(), got {type(self.provider).__name__}; without a host pass "
                "what context_summarize.providers.of_function.provider_of "
                "or context_summarize.providers.openai_compatible.make_provider returns"
            )


def retained_texts(contents: Iterable[str]) -> tuple[str, ...]:
    """Returns the texts among the contents that a host wants to retain.

    Raises:
        TypeError: `contents` is one text, or no collection.
    """
    if isinstance(contents, str) or not isinstance(contents, Iterable):
        raise TypeError(f"retain_contents must be a list of the reminders' texts, got {contents!r}")
    return tuple(content for content in contents if isinstance(content, str))


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of one request."""

    budget: int
    """Tokens, as the provider counts."""
    own: Limits
    """The limits in our own tokens."""
    correct: Callable[[int], int]
    """Our tokens → the provider's."""

    def used(self, view_tokens: int) -> int:
        """Returns the tokens of a request with a view of this size, as the provider counts."""
        return self.correct(view_tokens + self.own.system_tokens)

    def beside(self, tokens: int) -> RequestLimits:
        """Returns the limits of a view beside which rows of this size are shown."""
        room = self.own.view_room - tokens
        return replace(self, own=replace(self.own, view_room=room, base=max(0, min(self.own.base, room))))

    def keeping(self, rows: int) -> RequestLimits:
        """Returns the limits with so many more rows kept verbatim."""
        return replace(self, own=replace(self.own, keep_recent=self.own.keep_recent + rows)) if rows else self


def own_limits(config: Config, own_budget: int, system_tokens: int, own_cap: int | None = None) -> Limits:
    """Returns the limits for a budget, from the settings; both in our own tokens.

    Args:
        own_cap: `compact_threshold` in our own tokens, if the setting is given in tokens.
    """
    given, room = config.shorten_tool_results, own_budget - system_tokens
    base = max(0, room if own_cap is None else min(room, int(own_cap / config.threshold_share)))
    notes_share = config.notes_share * min(base, math.sqrt(_NOTES_AT * base))
    notes_room = min(notes_share, config.share_of_summaries / 3 * base)
    if isinstance(given, str):  # "auto"
        given = min(4_000, max(1, base // 10))
        newest: int | None = short_length(given)
    else:
        newest = given
    return Limits(
        system_tokens=system_tokens,
        view_room=room,
        base=base,
        keep_recent=config.keep_recent,
        threshold=config.threshold_share,
        target=config.target_usage,
        share=config.share_of_summaries,
        shorten_above=given,
        shorten_newest_above=newest,
        notes_room=int(notes_room),
    )
