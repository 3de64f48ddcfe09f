"""What the figures of a provider that chains on its server say about single requests."""

from __future__ import annotations

from statistics import fmean, linear_regression

_MOST = 16
"""Requests that are remembered."""
_LEAST = 4
"""Requests that show whether their sizes lie on a line."""
_SPREAD = 1.5
"""How many times as large as the smallest view the largest one is, at least, where a line is drawn."""
_OFF = 0.05
"""Share of their mean by which sizes may be off that line: reasoning that a server does not restore is off further."""


class Chain:
    """Follows the figures of one chain. Each is the server's copy of the conversation and the request behind it.

    The difference of two figures, less the answer between them, is the size of one request without its tools. So its
    absolute size stays unknown, but its growth tells the ratio of the provider's tokens to ours.
    """

    def __init__(self) -> None:
        self._restored: int | None = None
        """Tokens that the server restores for the next request; None = not known."""
        self._seen: list[tuple[int, int]] = []
        """Estimate and size of single requests."""

    def answered(self, actual: int, output: int) -> None:
        """A request with this figure (tokens) has been answered; the next one may follow it."""
        self._restored = actual + output

    def single(self, estimate: int, actual: int) -> int | None:
        """Tokens of the request alone, without tools; None if the figure does not follow the last one."""
        if self._restored is None or not 0 < actual - self._restored <= 1.8 * estimate:
            return None
        return actual - self._restored

    def ratio(self, estimate: int, single: int) -> float | None:
        """The provider's tokens for one of ours, with this request; None while its requests are on no plausible line.

        Args:
            estimate: our tokens of the view.
            single: what `single` returned for it.
        """
        self._seen = [*self._seen, (estimate, single)][-_MOST:]
        estimates, singles = zip(*self._seen, strict=True)
        if len(self._seen) < _LEAST or max(estimates) < _SPREAD * min(estimates):
            return None
        slope, intercept = linear_regression(estimates, singles)
        off = max(abs(slope * one + intercept - size) for one, size in self._seen)
        return slope if 0.7 <= slope <= 1.6 and off <= _OFF * fmean(singles) else None
