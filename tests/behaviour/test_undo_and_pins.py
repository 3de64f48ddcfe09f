"""A user takes a compaction back, and pins messages: without a call, and kept over a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_summarize.errors import SteeringError
from context_summarize.testing import JsonRow
from tests.support.gated import settle
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import call, result, tool_session, user
from tests.support.views import nodes, notes, untimed
from tests.support.virtual import Threads, run_virtually

SETTINGS: dict[str, Any] = {"segment_tokens": 512, "keep_recent": 4, "prefetch": False, "compact_threshold": 0.7}
BUDGET = 6_000


class Session(Managed):
    """One that counts its turns."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(BUDGET, host=Recorder(session_id="one"), **{**SETTINGS, **settings})
        self.turns = 0

    async def talk(self, turns: int = 1) -> list[JsonRow]:
        """The view after so many more turns."""
        await self.add(tool_session(turns, size=600, start=self.turns))
        self.turns += turns
        return await self.view()

    async def talk_until_compacted(self, times: int = 1) -> list[JsonRow]:
        while self.host.compactions < times:
            view = await self.talk()
        return view


class TestUndo:
    async def test_the_view_is_that_before_the_compaction_and_nobody_is_asked(self, caplog):
        """Every row stands verbatim again, grown at its end only; the saved tokens come back; the log says so."""
        session = Session()
        before = await session.talk(4)
        await session.talk_until_compacted()
        small, calls = await session.manager.get_token_count(), session.provider.calls
        with caplog.at_level("INFO"):
            grown = await session.manager.undo()
        assert f"undo of a compaction: {small} -> {small + grown} tokens" in caplog.text
        view = await session.view()
        assert view[: len(before)] == before
        assert untimed(view) == await session.rows()
        assert await session.manager.get_token_count() - small == grown > 0
        assert session.provider.calls == calls

    @pytest.mark.parametrize("compactions", [1, 2])
    async def test_a_resumed_session_stays_where_the_user_put_it(self, compactions):
        session = Session()
        compacted = await session.talk_until_compacted(compactions)
        await session.manager.undo()
        view = await session.view()
        assert view != compacted
        same = await session.again()
        assert await same.view() == view
        other = await same.again(host=Recorder(session_id="two"))
        assert await other.view() == compacted
        assert same.provider.calls == other.provider.calls == 0

    async def test_after_a_restart_the_last_compaction_can_still_be_taken_back(self):
        """Its forerunner is found in the store."""
        session = Session()
        first = await session.talk_until_compacted(1)
        await session.talk_until_compacted(2)
        again = await session.again()
        assert nodes(await again.view()) != nodes(first)
        await again.manager.undo()
        assert (await again.view())[: len(first)] == first
        assert notes(first) is not None
        assert again.provider.calls == 0


class TestPins:
    async def test_more_than_a_tenth_of_the_budget_is_refused_with_figures(self):
        """Nothing has changed; what was pinned before counts."""
        session = Session()
        await session.talk(6)
        await session.manager.pin(2)
        with pytest.raises(SteeringError, match=r"together, at most 600 may be pinned \(10% of the 6,000 that "):
            await session.manager.pin(range(1, 20))
        assert await session.manager.unpin([1]) == (2, 3)
        assert await session.manager.unpin() == ()

    @pytest.mark.parametrize("wrong", [0, 25, -1, "2", 1.5, True, [2, None], None])
    async def test_a_number_that_names_no_message_is_refused(self, wrong):
        """The error names it, and the messages that there are, or that there are none."""
        session = Session()
        with pytest.raises(SteeringError, match="no message 3 to pin or unpin; there are no messages yet"):
            await session.manager.pin(3)
        await session.talk(6)
        seen = str(None if isinstance(wrong, list) else wrong)
        with pytest.raises((SteeringError, TypeError), match=rf"message.* '?{seen}"):
            await session.manager.pin(wrong)
        assert await session.manager.unpin() == ()
        with pytest.raises(SteeringError, match="no message 999 to pin or unpin; there are messages 1 to 24"):
            await session.manager.unpin([999])

    async def test_a_call_without_its_results_cannot_be_pinned_yet(self):
        session = await Session().add([*tool_session(1), call("open", "lookup")])
        with pytest.raises(SteeringError, match="once all its results are there"):
            await session.manager.pin(5)
        await session.add([result("open", "here it is", "lookup")])
        assert await session.manager.pin(5) == (5, 6)

    async def test_pins_outlive_a_restart_and_an_edit_before_them(self):
        session = Session()
        await session.talk(4)
        await session.manager.pin(6)
        rows = await session.rows()
        again = await session.again()
        assert await again.manager.unpin([]) == (6, 7)
        await again.take([user("A word before all this."), *rows])
        assert await again.manager.unpin([]) == (7, 8)
        await again.add(tool_session(12, size=600, start=4))
        assert rows[5] in untimed(await again.view())
        third = await again.again()
        assert await third.manager.unpin([]) == (7, 8)
        assert rows[5] in untimed(await third.view())
        other = await third.again(host=Recorder(session_id="two"))
        assert await other.manager.unpin([]) == ()


def test_what_a_user_pins_while_the_host_replaces_the_history_stays_pinned():
    threads = Threads()

    async def pin_meanwhile() -> None:
        made, rows = Managed(20_000, segment_tokens=512, keep_recent=4), tool_session(21)
        await (await made.take(rows)).view()
        threads.hang(1)
        replacing = asyncio.create_task(made.take([*rows[:-1], user("changed by the host")]))
        await settle()
        pinning = asyncio.create_task(made.manager.pin(2))
        await settle()
        assert not replacing.done()
        threads.go_on()
        await replacing
        assert await pinning == await made.manager.pin([]) == (2, 3)
        await made.manager.close()

    run_virtually(pin_meanwhile(), threads)


@pytest.mark.parametrize("wrong", ["1", 1.0, True, None])
async def test_what_is_no_place_of_a_summary_is_refused(wrong):
    with pytest.raises(TypeError, match=f"summary must be a whole number, 1 for the oldest summary; got {wrong!r}"):
        await Session().manager.show(wrong)


def test_a_pin_that_comes_while_a_compaction_is_made_stays():
    """At each step of the event loop."""

    async def kept(turns: int) -> bool:
        session = await Session().add(tool_session(60, size=600))
        making = asyncio.create_task(session.manager.compact())
        for _ in range(turns):
            await asyncio.sleep(0)
        pinned = await session.manager.pin(5)
        await making
        return pinned == await session.manager.unpin([]) == (5,)

    assert [turns for turns in range(24, 44) if not run_virtually(kept(turns))] == []
