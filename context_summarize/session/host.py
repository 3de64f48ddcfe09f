"""The host's side of a request: its limits, the provider's figures, and the host's cancellation."""

from __future__ import annotations

from typing import Any

from context_summarize.config import Config
from context_summarize.session.mounts import Mounts
from context_summarize.session.request_limits import RequestLimits, RequestOptions, own_limits
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.session.windows import Refusals, request_budget
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter


class Host:
    """Computes the limits of requests, and holds what the provider reports about them."""

    def __init__(self, coordinator: Any | None, config: Config) -> None:
        self._config = config
        self.counter = TokenCounter()
        self.meter = Meter()
        self.mounts = Mounts(coordinator, config)
        self.is_cancelled = self.mounts.is_cancelled
        self.system = SystemPrompt(self.counter.count, config.redact, self.is_cancelled)
        session_id = getattr(coordinator, "session_id", None)
        self.session_id = session_id if isinstance(session_id, str) else None
        self.is_child = isinstance(getattr(coordinator, "parent_id", None), str)
        """True in the session of a sub-agent."""
        self.refusals = Refusals(self.meter, config.safety_margin)
        self.last = RequestOptions()
        """The host's last budget; that of a `hard_fit` request is not kept."""
        self.served: RequestLimits | None = None
        """The limits of the last request."""

    async def limits(self, wanted: RequestOptions) -> RequestLimits:
        """Returns the limits of the next request.

        Raises:
            TypeError, ValueError: as `request_budget`.
        """
        provider, system = self.mounts.seen(wanted.provider), self.system
        windows = self.mounts.windows
        budget = await request_budget(self._config, wanted.token_budget, provider, windows)
        budget = await self.refusals.bounded(budget, provider, windows)
        await system.refresh()
        cap = self._config.threshold_tokens
        own_cap = None if cap is None else self.meter.own(cap)
        limits = RequestLimits(
            budget=budget,
            own=own_limits(self._config, max(1, self.meter.invert(budget)), system.tokens, own_cap),
            system_prompt=system.text,
            status=system.status,
            correct=self.meter.correct,
        )
        if not wanted.hard_fit:  # a budget for one request alone
            self.last, self.served = RequestOptions(token_budget=wanted.token_budget), limits
        return limits
