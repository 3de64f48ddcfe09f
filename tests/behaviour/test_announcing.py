"""Lines for the host's user: one for a compaction, one for a long wait, one where fallbacks take a summary's place."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError
from amplifier_core.models import HookResult

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.recorder import Recorder
from tests.support.rows import tool_session
from tests.support.virtual import run_virtually


class Screen(Recorder):
    """A host with a screen."""

    def __init__(self, parent_id: str | None = None) -> None:
        super().__init__()
        self.parent_id = parent_id
        self.lines: list[tuple[str, str]] = []

    async def process_hook_result(self, result: HookResult, event: str, hook: str) -> HookResult:
        self.lines.append((result.user_message_level, result.user_message or ""))
        return result


class Slow(ScriptedProvider):
    """Takes five seconds for each answer."""

    async def complete(self, request: Any, **options: Any) -> Any:
        await asyncio.sleep(5)
        return await super().complete(request, **options)


async def told(screen: Screen, provider: ScriptedProvider, **settings: Any) -> list[tuple[str, str]]:
    """The lines of a request that makes a compaction."""
    manager = SummarizingContextManager(screen, segment_tokens=64, prefetch=False, keep_recent=4, **settings)
    await manager.set_messages(tool_session(8))
    await manager.get_messages_for_request(900, provider)
    await manager.get_messages_for_request(900, provider)
    await manager.close()
    return screen.lines


async def test_a_compaction_is_one_line() -> None:
    [(level, line)] = await told(Screen(), ScriptedProvider(then=answer))
    assert level == "info"
    assert re.fullmatch(r"context: [\d,]+ → [\d,]+ tokens, \d+ summar(y|ies), \d+\.\d s", line)


def test_a_long_wait_is_told_while_it_lasts() -> None:
    lines = run_virtually(told(Screen(), Slow(then=answer), max_concurrency=8))
    assert [line.split(" ")[1] == "the" for _, line in lines] == [True, False]


async def test_fallbacks_are_told_as_a_warning() -> None:
    lines = await told(Screen(), ScriptedProvider(then=AuthenticationError("no", provider="main")))
    assert [level for level, _ in lines] == ["info", "warning"]
    assert "the provider did not write" in lines[1][1]


@pytest.mark.parametrize(("screen", "settings"), [(Screen(), {"announce": False}), (Screen("parent"), {})])
async def test_nothing_is_told_where_it_is_not_wanted_or_of_a_sub_agent(screen: Screen, settings: Any) -> None:
    assert await told(screen, ScriptedProvider(then=answer), **settings) == []
