"""Requests that a provider has refused for their length: what it is sent afterwards is smaller."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeAlias

from context_summarize.summaries.failures import says_too_large
from context_summarize.tokens.calibration import Meter

logger = logging.getLogger(__name__)

_SMALLER = 0.9
"""Share of a refused request that the next one may take."""
_Asked: TypeAlias = tuple[int, str | None]
"""Identity of a provider, which lives as long as its session; and the model that it asked."""


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
        elif not isinstance(usage := response.get("usage"), dict) or self._meter.is_of_view(usage):
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
