"""Ends background tasks in bounded time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

logger = logging.getLogger(__name__)


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait at most half a second for their end, because foreign code may ignore a cancellation."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=0.5)
        if left:
            logger.warning("%d provider calls continue after the session's end: they ignore cancellation", len(left))
