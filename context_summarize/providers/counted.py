"""A wrapper that counts the calls of a provider."""

from __future__ import annotations

from typing import Any


class CountedProvider:
    """Counts the calls of a provider; everything else behaves like the wrapped provider."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self.calls = 0
        self.failed = 0
        self.input_tokens = 0
        self.output_tokens = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def complete(self, request: Any, **kwargs: Any) -> Any:
        """The provider's own answer."""
        self.calls += 1
        try:
            response = await self._provider.complete(request, **kwargs)
        except BaseException:  # a call that takes too long is cancelled
            self.failed += 1
            raise
        usage = getattr(response, "usage", None)
        self.input_tokens += getattr(usage, "input_tokens", None) or 0
        self.output_tokens += getattr(usage, "output_tokens", None) or 0
        return response
