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


def test_a_long_wait_of_several_requests_is_told_once() -> None:
    """Until the last one ends, although the first ends before the line is due."""

    async def session() -> list[str]:
        manager = SummarizingContextManager(screen := Screen(), segment_tokens=64, keep_recent=4, wait_seconds=60)
        await manager.set_messages(tool_session(8))
        requests = [asyncio.create_task(manager.get_messages_for_request(900, Slow(then=answer))) for _ in range(3)]
        await asyncio.sleep(1)
        requests[0].cancel()
        await asyncio.gather(*requests[1:])
        await manager.close()
        return [line for _, line in screen.lines if "waits" in line]

    assert len(run_virtually(session())) == 1


async def test_fallbacks_are_told_as_a_warning() -> None:
    lines = await told(Screen(), ScriptedProvider(then=AuthenticationError("no", provider="main")))
    assert [level for level, _ in lines] == ["info", "warning"]
    assert "the provider did not write" in lines[1][1]


@pytest.mark.parametrize(("screen", "settings"), [(Screen(), {"announce": False}), (Screen("parent"), {})])
async def test_nothing_is_told_where_it_is_not_wanted_or_of_a_sub_agent(screen: Screen, settings: Any) -> None:
    assert await told(screen, ScriptedProvider(then=answer), **settings) == []


async def test_a_host_that_cancels_its_line_cancels_no_request() -> None:
    """As an inner task of a screen that has ended does."""

    class Ended(Screen):
        async def process_hook_result(self, result: HookResult, event: str, hook: str) -> HookResult:
            raise asyncio.CancelledError

    assert await told(Ended(), ScriptedProvider(then=answer)) == []


# --- hooks that ask the user ------------------------------------------------------------------------------------------


class Asking(Screen):
    """A host whose hooks ask the user about each call, once they are let; the user agrees, where it can be asked."""

    def __init__(self, *, can_ask: bool = True) -> None:
        super().__init__()
        self.can_ask, self.asked, self.heard, self.go = can_ask, 0, asyncio.Event(), asyncio.Event()

    async def emit(self, name: str, data: dict[str, Any]) -> Any:
        await super().emit(name, data)
        if name != "provider:request":
            return HookResult()
        self.heard.set()
        await self.go.wait()
        return HookResult(action="ask_user", approval_prompt="A helper may cost money.")

    async def process_hook_result(self, result: HookResult, event: str, hook: str) -> HookResult:
        if result.action == "ask_user":
            self.asked += 1
            if not self.can_ask:
                raise RuntimeError("no approval system")
        return HookResult()


async def test_a_user_who_cannot_be_asked_has_not_agreed_and_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    host, provider = Asking(can_ask=False), ScriptedProvider(then=answer)
    host.go.set()
    await told(host, provider)
    assert provider.calls == 0
    assert "the host cannot ask its user" in caplog.text
    assert {data["kind"] for data in host.of("context-summarize:failure")} == {"denied"}


async def test_a_request_that_begins_to_wait_while_hooks_hear_of_a_call_has_the_user_asked() -> None:
    """The call was begun ahead of need."""
    host, provider = Asking(), ScriptedProvider(then=answer)
    manager = SummarizingContextManager(host, segment_tokens=512, keep_recent=4, max_concurrency=1)
    for row in tool_session(16):
        await manager.add_message(row)
        await manager.get_messages_for_request(5_000, provider)
    await host.heard.wait()
    assert not host.compactions
    waiting = asyncio.create_task(manager.get_messages_for_request(2_500, provider))
    for _ in range(200):
        await asyncio.sleep(0)
    assert manager.is_compacting
    host.go.set()
    await waiting
    assert host.asked
    assert [data["fallbacks"] for data in host.of("context:post_compact")] == [0]
    await manager.close()
