"""What others do while a request or a replaced history is at work, seen at the session's own parts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.session.compaction import Compactions
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.rows import tool_session, user


async def test_requests_that_hear_of_different_prompts_need_no_more_compactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each hides the stored prompt, or shows it; what one has planned holds for all that."""
    written, view = 0, Compactions.view

    async def counted(self: Compactions, *given: Any) -> Any:
        nonlocal written
        written += 1
        return await view(self, *given)

    monkeypatch.setattr(Compactions, "view", counted)
    prompts: Iterator[Any] = itertools.cycle([None, "You are kind."])

    async def prompt() -> Any:
        return next(prompts)

    manager = SummarizingContextManager(segment_tokens=512, prefetch=False, keep_recent=4)
    await manager.set_messages([{"role": "system", "content": "stored"}, *tool_session(100, size=4_000)])
    await manager.set_system_prompt_factory(prompt)
    provider = ScriptedProvider(then=answer)
    await asyncio.gather(*(manager.get_messages_for_request(20_000, provider) for _ in range(2)))
    assert written <= 4
    await manager.close()


async def test_what_a_user_pins_while_the_host_replaces_the_history_stays_pinned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
