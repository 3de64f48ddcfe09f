"""The turn: who looks at a session's state and changes it does so alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turn:
    """A lock that its holder gives up while it waits, if somebody is in a hurry.

    Requests hold it while they wait for summaries, so that what they have decided stays right. Whoever replaces the
    history or steers does not wait behind them: the waiting request steps aside and takes its turn again.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._hurried = 0
        self.is_hurried = asyncio.Event()
        """Set while somebody is in a hurry: ends the wait of the holder."""

    @asynccontextmanager
    async def taken(self, *, in_hurry: bool = False) -> AsyncIterator[None]:
        """Takes the turn for the time of the block.

        Args:
            in_hurry: True to ask a holder that waits to step aside.
        """
        if not in_hurry:
            async with self._lock:
                yield
            return
        self._hurried += 1
        self.is_hurried.set()
        try:
            async with self._lock:
                yield
        finally:
            self._hurried -= 1
            if not self._hurried:
                self.is_hurried.clear()
