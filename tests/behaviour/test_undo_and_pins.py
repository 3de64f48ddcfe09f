"""A user takes a compaction back, and pins messages: without a call, and kept over a restart."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider, broken_pairs
from tests.support.gated import answer
from tests.support.recorder import Clock, Recorder
from tests.support.rows import call, feed, result, tool_session, user
from tests.support.views import nodes, notes, untimed

SETTINGS: dict[str, Any] = {
    "segment_tokens": 512, "keep_recent": 4, "prefetch": False,
    "compact_threshold": 0.7,
}  # fmt: skip
BUDGET = 6_000


class Session:
    """A manager over a store that outlives it."""

    def __init__(self, store: MemoryStore | None = None, session_id: str = "one", **settings: Any) -> None:
        self.store = MemoryStore() if store is None else store
        self.provider = ScriptedProvider(then=answer, context_window=200_000)
        self.host = Recorder(session_id=session_id)
        self.settings = {**SETTINGS, **settings}
        self.manager = SummarizingContextManager(self.host, store=self.store, **self.settings)
        self.turns = 0

    async def talk(self, turns: int = 1) -> Session:
        await feed(self.manager, tool_session(turns, size=600, start=self.turns))
        self.turns += turns
        return self

    async def view(self, budget: int = BUDGET) -> list[JsonRow]:
        return await self.manager.get_messages_for_request(budget, self.provider)

    async def talk_until_compacted(self, times: int = 1) -> Session:
        while self.host.compactions < times:
            await self.talk()
            await self.view()
        return self

    async def again(self, session_id: str = "one") -> Session:
        """The same history in a new process."""
        rows = untimed(await self.manager.get_messages())
        await self.manager.close()
        other = Session(self.store, session_id)
        other.settings, other.turns = self.settings, self.turns
        other.manager = SummarizingContextManager(other.host, store=self.store, **self.settings)
        await other.manager.set_messages(rows)
        return other


class TestUndo:
    async def test_the_view_is_that_before_the_compaction_and_nobody_is_asked(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Every row stands verbatim again, grown at its end only; the saved tokens come back; the log says so."""
        session = await Session().talk(4)
        before = await session.view()
        await session.talk_until_compacted()
        small, calls = await session.manager.get_token_count(), session.provider.calls
        with caplog.at_level("INFO"):
            grown = await session.manager.undo()
        assert f"undo of a compaction: {small} -> {small + grown} tokens" in caplog.text
        view = await session.view()
        assert view[: len(before)] == before
        assert untimed(view) == untimed(await session.manager.get_messages())
        assert await session.manager.get_token_count() - small == grown > 0
        assert session.provider.calls == calls

    async def test_no_compaction_by_the_threshold_until_usage_has_grown(self) -> None:
        """Then one is made, of the summaries that are known."""
        session = await Session().talk_until_compacted()
        await session.manager.undo()
        held = await session.manager.get_token_count()
        used = held
        while used < held + 0.56 * (BUDGET - held):
            assert nodes(await session.view()) == []
            await session.talk()
            used = await session.manager.get_token_count()
        assert used < BUDGET
        assert nodes(await session.view())

    async def test_it_is_refused_where_the_earlier_view_does_not_fit(self) -> None:
        """With figures; nothing has changed."""
        session = await Session().talk_until_compacted()
        await session.talk(4)
        view = await session.view(5_000)
        with pytest.raises(SteeringError, match=r"would hold [\d,]+ tokens, and the budget is 5,000") as caught:
            await session.manager.undo()
        assert isinstance(caught.value, ValueError)
        assert await session.view(5_000) == view

    @pytest.mark.parametrize("compactions", [1, 2])
    async def test_a_resumed_session_stays_where_the_user_put_it(self, compactions: int) -> None:
        """The same view, held back as before; another session with these rows gets the compaction."""
        session = await Session().talk_until_compacted(compactions)
        compacted = await session.view()
        await session.manager.undo()
        view = await session.view()
        assert view != compacted
        same = await session.again()
        assert await same.view() == view
        other = await same.again("two")
        assert await other.view() == compacted
        assert same.provider.calls == other.provider.calls == 0

    async def test_after_a_restart_the_last_compaction_can_still_be_taken_back(self) -> None:
        """Its forerunner is found in the store, then the one before."""
        session = await Session().talk_until_compacted(1)
        first = await session.view()
        await session.talk_until_compacted(2)
        again = await session.again()
        assert len(nodes(await again.view())) > len(nodes(first))
        await again.manager.undo()
        assert (await again.view())[: len(first)] == first
        assert notes(first) is not None
        assert again.provider.calls == 0


class TestPins:
    async def test_a_pinned_message_stays_verbatim_from_the_next_compaction_on(self) -> None:
        """With its whole group: a pinned call keeps its result; the view does not change before."""
        session = await Session().talk(6)
        before = await session.view()
        assert await session.manager.pin([2, 13]) == (2, 3, 13)
        assert await session.view() == before
        rows = untimed(await session.manager.get_messages())
        await session.talk_until_compacted(2)
        view = await session.view()
        assert all(row in untimed(view) for row in (rows[1], rows[2], rows[12]))
        assert rows[5] not in untimed(view)
        assert broken_pairs(view) == []

    async def test_more_than_a_tenth_of_the_budget_is_refused_with_figures(self) -> None:
        """Nothing has changed; what was pinned before counts."""
        session = await Session().talk(6)
        await session.view()
        await session.manager.pin(2)
        with pytest.raises(SteeringError, match=r"together, at most 600 may be pinned \(10% of the 6,000 that "):
            await session.manager.pin(range(1, 20))
        assert await session.manager.unpin([1]) == (2, 3)
        assert await session.manager.unpin() == ()

    async def test_the_limit_is_a_tenth_of_what_the_threshold_leaves_where_that_is_less_than_the_budget(self) -> None:
        """90,000 tokens at the latest are 65 % of 138,461, whatever the window."""
        session = Session(compact_threshold=[0.65, 90_000])
        await session.manager.add_message(user("word " * 20_000))
        await session.view(198_000)
        with pytest.raises(SteeringError, match=r"at most 13,846 may be pinned \(10% of the 138,461 "):
            await session.manager.pin(1)

    @pytest.mark.parametrize("wrong", [0, 25, -1, "2", 1.5, True, [2, None], None])
    async def test_a_number_that_names_no_message_is_refused(self, wrong: Any) -> None:
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

    async def test_a_call_without_its_results_cannot_be_pinned_yet(self) -> None:
        """Half a pair would break a view."""
        session = await Session().talk(1)
        await session.manager.add_message(call("open", "lookup"))
        with pytest.raises(SteeringError, match="once all its results are there"):
            await session.manager.pin(5)
        await session.manager.add_message(result("open", "here it is", "lookup"))
        assert await session.manager.pin(5) == (5, 6)

    async def test_pins_outlive_a_restart_and_an_edit_before_them(self) -> None:
        """They are found by the hash of their group; other sessions do not have them."""
        session = await Session().talk(4)
        await session.view()
        await session.manager.pin(6)
        rows = untimed(await session.manager.get_messages())
        again = await session.again()
        assert await again.manager.unpin([]) == (6, 7)
        edited = [user("A word before all this."), *rows]
        await again.manager.set_messages(edited)
        assert await again.manager.unpin([]) == (7, 8)
        await again.talk_until_compacted()
        assert rows[5] in untimed(await again.view())
        third = await again.again()
        assert await third.manager.unpin([]) == (7, 8)
        assert await third.view() == await third.view()
        assert rows[5] in untimed(await third.view())
        other = await third.again("two")
        assert await other.manager.unpin([]) == ()


HOUR = 3_600
"""Seconds after which no provider's prompt cache is warm."""


class TestColdCache:
    async def session(self, fill: int = 12) -> tuple[Session, Clock]:
        """A session near its threshold whose summaries are ready, and its clock."""
        clock = Clock()
        session = Session(prefetch=True)
        manager = SummarizingContextManager(
            session.host, store=session.store, clock=clock, sleep=clock.sleep, config=session.settings
        )
        session.manager = manager
        for _ in range(fill):
            await session.talk()
            await session.view()
            await manager.settle()
        assert 0.5 * BUDGET < await manager.get_token_count() < 0.7 * BUDGET
        assert session.provider.calls > 0
        return session, clock

    async def test_after_a_pause_a_compaction_is_made_of_what_is_ready(self) -> None:
        """Below the threshold, without a call and without waiting; the event says why."""
        session, clock = await self.session()
        calls = session.provider.calls
        await session.talk()
        clock.time += HOUR + 1
        assert nodes(await session.view())
        assert session.host.of("context:pre_compact")[0]["reason"] == "cold_cache"
        assert clock.slept == []
        await session.manager.settle()
        assert session.provider.calls == calls

    @pytest.mark.parametrize(("pause", "rows"), [(HOUR - 1, 1), (9_000, 0)])
    async def test_without_a_long_pause_or_new_rows_nothing_is_done(self, pause: float, rows: int) -> None:
        """The cache is warm, or the request is the one it holds."""
        session, clock = await self.session()
        await session.talk(rows)
        clock.time += pause
        assert nodes(await session.view()) == []
