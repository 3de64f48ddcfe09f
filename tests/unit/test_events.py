"""The outbox: events in order, once each, whatever the hooks do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_summarize.events import Outbox


class Hooks:
    """Records what is emitted; `answers` are raised or awaited, one an event."""

    def __init__(self, *answers: Any) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.answers = list(answers)

    async def emit(self, name: str, data: dict[str, Any]) -> None:
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, asyncio.Event):
            await answer.wait()
        elif answer is not None:
            raise answer
        self.seen.append((name, data))


async def test_events_go_out_in_order_and_once() -> None:
    """A second flush finds nothing."""
    hooks = Hooks()
    outbox = Outbox(hooks)
    await outbox.flush()
    outbox.put("one", {"n": 1})
    outbox.put("two", {"n": 2})
    assert hooks.seen == []
    await outbox.flush()
    await outbox.flush()
    assert hooks.seen == [("one", {"n": 1}), ("two", {"n": 2})]


async def test_what_a_cancellation_held_back_goes_out_the_next_time() -> None:
    """Events of a committed compaction are not lost with the request."""
    hooks = Hooks(asyncio.Event())
    outbox = Outbox(hooks)
    for name in ("one", "two", "three"):
        outbox.put(name, {})
    task = asyncio.create_task(outbox.flush())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await outbox.flush()
    assert [name for name, _ in hooks.seen][-2:] == ["two", "three"]


async def test_two_flushes_at_once_emit_each_event_once() -> None:
    """Concurrent requests share one outbox."""
    go = asyncio.Event()
    hooks = Hooks(go)
    outbox = Outbox(hooks)
    outbox.put("one", {})
    outbox.put("two", {})
    both = asyncio.gather(outbox.flush(), outbox.flush())
    await asyncio.sleep(0)
    go.set()
    await both
    assert sorted(name for name, _ in hooks.seen) == ["one", "two"]
