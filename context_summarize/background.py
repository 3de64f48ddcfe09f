"""Tasks that run beside the session: how they are ended, in bounded time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

logger = logging.getLogger(__name__)


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, at most half a second: foreign code may swallow a cancellation."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=0.5)
        if left:
            logger.warning("%d calls of a provider go on after the session's end: they ignore cancellation", len(left))
