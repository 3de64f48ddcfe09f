"""The events of this module: their names, and an outbox that emits each event once."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

from context_summarize.background import end_tasks
from context_summarize.redaction import traceback_of

logger = logging.getLogger(__name__)

PRE_COMPACT = "context:pre_compact"
POST_COMPACT = "context:post_compact"
COMPACTION = "context:compaction"
RESOLVE = "provider:resolve"
REQUEST = "provider:request"
LOOP_ERROR = "provider:error"
HEARD = ("llm:response", LOOP_ERROR)
"""What this module hears: providers tell of every call, loops of their own calls that fail."""
SUMMARY = "context-summarize:summary"
FAILURE = "context-summarize:failure"
OVER_BUDGET = "context-summarize:over_budget"

ALL_EVENTS = (PRE_COMPACT, POST_COMPACT, COMPACTION, RESOLVE, REQUEST, SUMMARY, FAILURE, OVER_BUDGET)


class Outbox:
    """Events in order. If a cancellation stops an event, the next flush emits it."""

    def __init__(self, hooks: Any | None, redact: bool | Sequence[str] = True) -> None:
        self._hooks = hooks
        self._redact = redact
        self.waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._under_way: set[asyncio.Task[Any]] = set()

    def put(self, name: str, data: dict[str, Any]) -> None:
        """Add an event; the next `flush` emits it."""
        if self._hooks is not None:
            self.waiting.append((name, data))

    async def flush(self) -> None:
        """Emit the waiting events. A hook that raises changes nothing."""
        while self.waiting:
            # If the request is cancelled, the hooks still handle the current event to its end.
            task = asyncio.create_task(self.denial(*self.waiting.popleft()))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            await asyncio.shield(task)

    async def denial(self, name: str, data: dict[str, Any]) -> str | None:
        """Emit an event now; why a hook denies what it announces, None if none does or it raises.

        A hook that would ask the user denies as well, for nobody can be asked about work in the background. What a hook
        injects is for the conversation's own requests.
        """
        try:
            answer = await self._hooks.emit(name, data) if self._hooks is not None else None
            if answer is None or answer.action not in ("deny", "ask_user"):
                return None
            return str(answer.reason or answer.approval_prompt or "it gives no reason")
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            logger.warning("a hook failed on %s: %s", name, traceback_of(error, self._redact))
            return None

    async def close(self) -> None:
        """End the emissions that nobody waits for."""
        await end_tasks(list(self._under_way))
