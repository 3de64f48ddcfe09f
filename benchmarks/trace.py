"""Functions and files of the package that run in a quiet request and in a compaction."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import context_summarize
from benchmarks.sessions import recorded
from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider

PACKAGE = str(Path(context_summarize.__file__).parent)


async def _traced(manager: SummarizingContextManager, provider: ScriptedProvider) -> dict[str, int]:
    """Distinct functions and files of one request; comprehensions and lambdas belong to the function around them."""
    found: set[CodeType] = set()

    def called(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            found.add(code)

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        await manager.get_messages_for_request(provider=provider)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {"functions": len(found), "files": len({code.co_filename for code in found})}


async def _requests() -> dict[str, dict[str, int]]:
    provider = ScriptedProvider(context_window=40_000)
    manager = SummarizingContextManager(config={"cache": "memory", "prefetch": False})
    rows, found = iter(recorded()), dict[str, dict[str, int]]()
    while "first compaction" not in found:
        await manager.add_message(next(rows))
        if await manager.should_compact():
            found["first compaction"] = await _traced(manager, provider)
        elif len(found) == 0 and await manager.get_token_count() > 8_000:
            await manager.get_messages_for_request(provider=provider)
            await manager.add_message(next(rows))
            found["quiet request"] = await _traced(manager, provider)
    await manager.close()
    return found


def counted() -> dict[str, dict[str, int]]:
    """Distinct functions and files, by what ran."""
    return asyncio.run(_requests())
