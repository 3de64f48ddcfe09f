"""The services of a session, for tests of single parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

from context_summarize.config import Config
from context_summarize.events import Outbox
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.services import Services, Statistics


def services(
    config: Config,
    count: Callable[[str], int],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    totals: Statistics | None = None,
) -> Services:
    """Services with what is given; a store in memory, the default prompts and fresh totals for the rest."""
    return Services(
        config=config,
        prompts=load_prompts("default"),
        store=MemoryStore(),
        outbox=Outbox(SimpleNamespace(hooks=None)),
        totals=totals or Statistics(),
        count=count,
        clock=clock,
        sleep=sleep,
    )
