"""What comes while `compact()` waits for summaries: requests are served in their own time, and nothing is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.messages.reading import broken_pairs
from context_summarize.notes.fallback import FALLBACK_LINE
from tests.support.gated import Gated
from tests.support.recorder import Recorder
from tests.support.rows import tool_session, user
from tests.support.views import size, untimed
from tests.support.virtual import run_virtually

SMALL: dict[str, Any] = {"keep_recent": 4, "segment_tokens": 64, "prefetch": False}
SOON = 10
"""Seconds after which a wait for the summaries would be seen."""


class Beside:
    """A session whose `compact()` waits for a provider that does not answer yet."""

    def __init__(self, **settings: Any) -> None:
        self.recorder, self.provider = Recorder(), Gated()
        self.manager = SummarizingContextManager(self.recorder, **{**SMALL, "wait_seconds": 0, **settings})
        self.rows = tool_session(12)

    async def begin(self, budget: int) -> asyncio.Task[int]:
        """`compact()`, once it has asked; requests have this budget."""
        self.budget = budget
        await self.manager.set_messages(self.rows)
        await self.request()
        compacting = asyncio.create_task(self.manager.compact("the orders"))
        await self.provider.asked.wait()
        return compacting

    async def add(self, *rows: dict[str, Any]) -> None:
        for row in rows:
            await self.manager.add_message(row)
            self.rows.append(row)

    async def request(self) -> list[dict[str, Any]]:
        """The rows of a request, which must not wait for the provider."""
        return await asyncio.wait_for(self.manager.get_messages_for_request(self.budget, self.provider), SOON)

    async def end(self, compacting: asyncio.Task[int]) -> list[dict[str, Any]]:
        """The provider answers, and `compact()` ends: the rows of the next request."""
        self.provider.go.set()
        assert await compacting >= 0
        view = await self.request()
        assert untimed(await self.manager.get_messages()) == self.rows
        assert broken_pairs(view) == []
        assert size(view) <= self.budget
        assert self.recorder.count("context:pre_compact") == self.recorder.count("context:post_compact")
        await self.manager.close()
        return view


async def test_a_request_beside_compact_is_served_as_it_is_where_it_fits() -> None:
    """It waits at most `wait_seconds`; the compaction is made all the same, of what was said before and since."""
    session = Beside()
    compacting = await session.begin(100_000)
    await session.add(user("one more"))
    view = await session.request()
    assert untimed(view) == session.rows
    assert not compacting.done()
    after = await session.end(compacting)
    assert size(after) < size(view)
    assert after[-1]["content"] == "one more"
    assert session.recorder.compactions == 1


async def test_a_request_beside_compact_that_does_not_fit_shows_fallbacks() -> None:
    """As any whose summaries are late; `compact()` goes on from its view."""
    session = Beside(auto_compact=False)
    compacting = await session.begin(size(tool_session(12)) + 200)
    await session.add(*tool_session(8, start=100))
    view = await session.request()
    assert size(view) <= session.budget
    assert broken_pairs(view) == []
    assert not compacting.done()
    assert any(FALLBACK_LINE in str(row["content"]) for row in view)
    assert size(await session.end(compacting)) <= size(view)


@pytest.mark.parametrize("what", ["preview", "should_compact", "pin", "get_token_count"])
async def test_the_user_is_answered_beside_compact(what: str) -> None:
    """Nobody waits for a summary that somebody else wants."""
    session = Beside()
    compacting = await session.begin(100_000)
    asked = {
        "preview": session.manager.preview,
        "should_compact": session.manager.should_compact,
        "pin": lambda: session.manager.pin(2),
        "get_token_count": session.manager.get_token_count,
    }
    await asyncio.wait_for(asked[what](), SOON)
    assert not compacting.done()
    after = await session.end(compacting)
    assert (session.rows[1] in untimed(after)) == (what == "pin")


def test_two_requests_at_once_wait_no_longer_than_one() -> None:
    """Of a provider that never answers, beside `compact()`: each is answered after `wait_seconds`, and fits."""

    async def waits() -> list[float]:
        loop = asyncio.get_running_loop()
        manager = SummarizingContextManager(clock=loop.time, **{**SMALL, "wait_seconds": 5})
        provider = Gated()
        await manager.set_messages(tool_session(12))
        compacting = asyncio.create_task(manager.compact())
        await asyncio.sleep(0)

        async def request() -> float:
            began = loop.time()
            assert size(await manager.get_messages_for_request(900, provider)) <= 900
            return loop.time() - began

        found = list(await asyncio.gather(request(), request(), request()))
        compacting.cancel()
        await manager.close()
        return found

    assert run_virtually(waits()) == pytest.approx([5, 5, 5], abs=0.2)
