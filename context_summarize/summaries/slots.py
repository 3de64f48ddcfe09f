"""How many summaries are asked for at once: fewer when answers slow down as more are asked, more again later."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

_LEAST_SECONDS = 0.5
"""Answers that come faster than this are not measured: whoever is that fast need not be spared."""
_ROUND = 8
"""Answers at the limit after which one more at a time is tried again."""
_MEMORY = 0.5
"""Weight of the newest answer in the mean."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way. Calls that began in one moment are not the same call."""

    started: float
    shared: float = 0.0
    """Seconds times calls under way, summed over its life."""


class Slots:
    """A semaphore whose size follows what the provider can do.

    The time of one answer, divided by the mean number of calls that were under way meanwhile, is what an answer costs.
    A provider that works on n calls side by side answers n times as often as with one; a provider that queues them
    answers as often as with one. Where the n-th call brings less than half of its share, one call fewer is made at a
    time; a timeout halves their number. After eight answers at the limit one more is tried.

    Args:
        most: slots at most, 1 or more.
        clock: seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self.limit = most
        """Slots now."""
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._calls: list[_Call] = []
        self._at = clock()
        self._cost: dict[int, float] = {}
        """Seconds that an answer costs, by how many calls were under way."""
        self._answers = 0

    # --- slots ------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot; wait for it where none is free. Those that came first go first."""
        if self._taken >= self.limit or self._waiting:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                elif not turn.cancelled():
                    self._release()
                raise
        else:
            self._taken += 1
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        self._taken -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._taken < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)

    # --- measuring --------------------------------------------------------------------------------------------------

    def _pass(self) -> None:
        now = self._clock()
        for call in self._calls:
            call.shared += (now - self._at) * len(self._calls)
        self._at = now

    def begin(self) -> _Call:
        """A call begins; the caller hands the result to `end`."""
        self._pass()
        call = _Call(self._at)
        self._calls.append(call)
        return call

    def end(self, call: _Call, *, answered: bool = False, late: bool = False) -> None:
        """It has ended: with an answer, past its time, or in another way, which tells nothing."""
        self._pass()
        self._calls.remove(call)
        seconds = self._at - call.started
        if late and seconds >= _LEAST_SECONDS:
            self._set_limit(max(1, self.limit // 2))
        elif answered and seconds >= _LEAST_SECONDS:
            self._weigh(seconds, call.shared / seconds)

    def _weigh(self, seconds: float, beside: float) -> None:
        calls = max(1, round(beside))
        cost = seconds / beside
        self._cost[calls] = cost + (1 - _MEMORY) * (self._cost.get(calls, cost) - cost)
        fewer = max((known for known in self._cost if known < calls), default=None)
        if fewer is not None and calls <= self.limit:
            best, none = self._cost[fewer] * fewer / calls, self._cost[fewer]
            if self._cost[calls] > (best + none) / 2:
                self._set_limit(max(1, calls - 1))
                return
        if calls >= self.limit:
            self._answers += 1
            if self._answers >= _ROUND and self.limit < self._most:
                self._set_limit(self.limit + 1)

    def _set_limit(self, limit: int) -> None:
        if limit == self.limit:
            return
        grows = limit > self.limit
        self.limit, self._answers = limit, 0
        for known in [known for known in self._cost if known > limit or (grows and known == limit)]:
            del self._cost[known]
        self._wake()
