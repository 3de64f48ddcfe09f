"""What others do while a request or a replaced history is at work."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.recorder import Recorder
from tests.support.rows import tool_session, user


class Host(Recorder):
    """A host that counts how often notes are written: it is asked then for what is under way."""

    written = 0

    def get_capability(self, name: str) -> Any:
        return self._operations if name == "context.active_operations" else None

    def _operations(self) -> list[Any]:
        self.written += 1
        return []


async def test_requests_that_hear_of_different_prompts_need_no_more_compactions():
    """Each hides the stored prompt, or shows it; what one has planned holds for all that."""
    prompts, host = itertools.cycle([None, "You are kind."]), Host()

    async def prompt() -> Any:
        return next(prompts)

    manager = SummarizingContextManager(host, segment_tokens=512, prefetch=False, keep_recent=4)
    await manager.set_messages([{"role": "system", "content": "stored"}, *tool_session(40, size=4_000)])
    await manager.set_system_prompt_factory(prompt)
    provider = ScriptedProvider(then=answer)
    await asyncio.gather(*(manager.get_messages_for_request(20_000, provider) for _ in range(2)))
    assert 0 < host.written <= 4
    await manager.close()


async def test_of_several_requests_at_once_one_writes_the_notes():
    host, provider = Host(), ScriptedProvider(then=answer)
    manager = SummarizingContextManager(host, segment_tokens=512, prefetch=False, keep_recent=4)
    await manager.set_messages(tool_session(40, size=4_000))
    await asyncio.gather(*(manager.get_messages_for_request(20_000, provider) for _ in range(5)))
    assert (host.written, host.compactions) == (1, 1)
    await manager.close()


async def test_what_a_user_pins_while_the_host_replaces_the_history_stays_pinned(monkeypatch):
    manager, rows = SummarizingContextManager(segment_tokens=64, prefetch=False, keep_recent=4), tool_session(20)
    await manager.set_messages(rows)
    await manager.get_messages_for_request(9_000, ScriptedProvider(then=answer))
    pinned: list[tuple[int, ...]] = []

    async def in_thread(size: int, do: Callable[..., Any], *given: Any) -> Any:
        done = do(*given)
        if not pinned and do.__name__ == "_fill":
            pinned.append(await manager.pin(2))
        return done

    monkeypatch.setattr("context_summarize.session.incoming.in_thread", in_thread)
    await manager.set_messages([*rows[:-1], user("changed by the host")])
    assert pinned == [await manager.pin([])]
    await manager.close()
