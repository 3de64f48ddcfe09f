"""Lines for the host's user: one for a compaction, one for a long wait, one where fallbacks take a summary's place."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any
from unittest.mock import AsyncMock

import pytest
from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError
from amplifier_core.message_models import ChatRequest
from amplifier_core.models import HookResult

from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.managed import Managed
from tests.support.recorder import Recorder, Screen
from tests.support.rows import tool_session
from tests.support.virtual import run_virtually

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False, "keep_recent": 4}
DOWN = ProviderUnavailableError("503", retryable=False)


async def told(screen: Screen, provider: ScriptedProvider, **settings: Any) -> list[tuple[str, str]]:
    """The lines of a request that makes a compaction."""
    parts: dict[str, Any] = {"provider": lambda: provider, "host": screen}
    session = Managed(900, **parts, segment_tokens=64, prefetch=False, keep_recent=4, **settings)
    await session.take(tool_session(1))
    await session.view()
    await session.add(tool_session(7, start=1))
    for _ in range(2):
        await session.view()
    await session.manager.close()
    return screen.lines


async def test_a_compaction_is_one_line():
    [(level, line)] = await told(Screen(), ScriptedProvider(then=answer))
    assert level == "info"
    assert re.fullmatch(r"context: [\d,]+ → [\d,]+ tokens, \d+ summar(y|ies), \d+\.\d s", line)


@pytest.mark.parametrize(("waited", "is_long"), [(2.8, False), (3.2, True)])
def test_a_wait_of_more_than_three_seconds_is_told_while_it_lasts(waited, is_long):
    async def slowly(request: ChatRequest) -> str:
        await asyncio.sleep(waited / 3)  # a segment, and two levels of merges
        return answer(request)

    async def lines() -> list[str]:
        clock = asyncio.get_running_loop().time
        lines = await told(Screen(), ScriptedProvider(then=slowly), max_concurrency=8, clock=clock)
        return [line for _, line in lines]

    *first, last = run_virtually(lines())
    assert last.endswith(f", {waited} s")
    assert [line.split(" ")[1] for line in first] == ["the"] * is_long


async def test_fallbacks_are_told_as_a_warning():
    lines = await told(Screen(), ScriptedProvider(then=AuthenticationError("no", provider="main")))
    assert [level for level, _ in lines] == ["error", "info", "warning"]
    assert "writes no summary, and is not asked again in this session: AuthenticationError: no (auth)" in lines[0][1]
    assert "the provider did not write" in lines[2][1]


@pytest.mark.parametrize(
    ("screen", "settings", "level"),
    [
        (Screen(), {}, logging.INFO),
        (Screen("parent"), {}, logging.INFO),
        (Screen(), {"announce": False}, logging.INFO),
        (Recorder(), {}, logging.WARNING),
    ],
    ids=["screen", "sub-agent", "silent", "no screen"],
)
async def test_a_terminal_that_shows_the_log_shows_no_failure_twice(screen, settings, level, caplog):
    """What the user is told is in the log at info; keys are for debugging. Where nobody is told, the log warns."""
    caplog.set_level(logging.DEBUG, "context_summarize")
    session = Managed(900, provider=lambda: ScriptedProvider(then=DOWN), host=screen, **SMALL, **settings)
    await (await session.take(tool_session(8))).view()
    levels = {record.levelno for record in caplog.records if "summar" in record.getMessage()}
    assert max(levels) == level
    assert {record.levelno for record in caplog.records if "for key" in record.getMessage()} == {logging.DEBUG}
    await session.manager.close()


class Asking(Screen):
    """A host whose hooks ask the user about each call, once they are let; the user agrees."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.heard, self.go = 0, asyncio.Event(), asyncio.Event()

    async def emit(self, name: str, data: dict[str, Any]) -> Any:
        await super().emit(name, data)
        if name != "provider:request":
            return HookResult()
        self.heard.set()
        await self.go.wait()
        return HookResult(action="ask_user", approval_prompt="A helper may cost money.")

    async def process_hook_result(self, result: HookResult, event: str, hook: str) -> HookResult:
        self.asked += result.action == "ask_user"
        return HookResult()


async def test_a_user_who_cannot_be_asked_has_not_agreed_and_it_is_told(caplog):
    host: Any = Asking()
    provider = ScriptedProvider(then=answer)
    host.process_hook_result = AsyncMock(side_effect=RuntimeError("no approval system"))
    host.go.set()
    await told(host, provider)
    assert provider.calls == 0
    assert "the host cannot ask its user" in caplog.text
    assert {data["kind"] for data in host.of("context-summarize:failure")} == {"denied"}
