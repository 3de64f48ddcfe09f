"""The events of this module: their names, and an outbox that emits each of them once."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from context_summarize.background import end_tasks

logger = logging.getLogger(__name__)

PRE_COMPACT = "context:pre_compact"
POST_COMPACT = "context:post_compact"
COMPACTION = "context:compaction"
INCLUDE = "context:include"
MESSAGE_ADDED = "context:message_added:debug"
SUMMARY = "context-summarize:summary"
FAILURE = "context-summarize:failure"
OVER_BUDGET = "context-summarize:over_budget"

ALL_EVENTS = (PRE_COMPACT, POST_COMPACT, COMPACTION, INCLUDE, MESSAGE_ADDED, SUMMARY, FAILURE, OVER_BUDGET)


class Outbox:
    """Events in order. What a cancellation keeps from going out goes out the next time."""

    def __init__(self, hooks: Any | None) -> None:
        self._hooks = hooks
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._under_way: set[asyncio.Task[None]] = set()

    def put(self, name: str, data: dict[str, Any]) -> None:
        """Note an event; it goes out with the next `flush`."""
        if self._hooks is not None:
            self._waiting.append((name, data))

    async def flush(self) -> None:
        """Emit what is waiting. A hook that raises changes nothing."""
        while self._waiting:
            # Hooks that have begun to hear an event hear it to its end, whoever is cancelled meanwhile.
            task = asyncio.create_task(self._emit(*self._waiting.popleft()))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            await asyncio.shield(task)

    async def _emit(self, name: str, data: dict[str, Any]) -> None:
        try:
            await self._hooks.emit(name, data)  # type: ignore[union-attr]
        except Exception:
            logger.warning("a hook failed on %s", name, exc_info=True)

    async def close(self) -> None:
        """End what nobody waits for any more."""
        await end_tasks(list(self._under_way))
