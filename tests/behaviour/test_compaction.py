"""Boundaries: their events with every payload key, once each, and what happens when one is not made after all."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest, Message

from context_summarize import Config, SummarizingContextManager
from context_summarize.core.nodes import Node, next_index, regular_frontier
from context_summarize.events import COMPACTION, INCLUDE, OVER_BUDGET, POST_COMPACT, PRE_COMPACT, SUMMARY
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import ScriptedProvider, assistant, call, result, tool_session, user
from context_summarize.tokens.counter import TokenCounter
from tests.support.gated import Gated, answer
from tests.support.recorder import Recorder
from tests.support.views import nodes, size

SMALL: dict[str, Any] = {"segment_tokens": 64, "summary_tokens": 32, "fan_in": 2, "prefetch_threshold": None}
LARGE = 10**6
COUNT = TokenCounter().count
FRAME_WORDS = "Summary of messages"


def wordy(request: ChatRequest) -> str:
    """Nearly as long as what it stands for, and just short enough for the gate."""
    return "".join(f" word {at}" for at in range(int(0.3 * COUNT(str(request.messages[1].content)))))


class Raising(Recorder):
    """Raises at the events of one name, or at all."""

    def __init__(self, raises: str) -> None:
        super().__init__()
        self.raises = raises

    async def emit(self, name: str, data: dict[str, Any]) -> None:
        await super().emit(name, data)
        if self.raises in (name, "all"):
            raise RuntimeError(f"hook on {name}")


def manager(recorder: Recorder | None, **settings: Any) -> SummarizingContextManager:
    return SummarizingContextManager(recorder, config=Config.from_mapping({**SMALL, "keep_recent": 4, **settings}))


async def crossed(recorder: Recorder, budget: int = 900, **settings: Any) -> list[JsonRow]:
    """The view after one boundary."""
    made = manager(recorder, **settings)
    await made.set_messages(tool_session(8))
    return await made.get_messages_for_request(budget, ScriptedProvider(then=answer))


async def cancelled() -> tuple[SummarizingContextManager, Recorder, Gated]:
    """A manager whose first boundary was given up while the provider was at work."""
    made, provider = manager(recorder := Recorder()), Gated()
    await made.set_messages(tool_session(8))
    request = asyncio.create_task(made.get_messages_for_request(900, provider))
    await provider.asked.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    return made, recorder, provider


class TestEvents:
    async def test_a_boundary_tells_all_of_it_in_order_and_once(self) -> None:
        """Before it, the summaries, after it, what came of it, and each new node."""
        recorder = Recorder()
        view = await crossed(recorder)
        told = [name for name in recorder.names() if name != SUMMARY]
        assert told == [PRE_COMPACT, POST_COMPACT, COMPACTION, *[INCLUDE] * len(nodes(view))]
        assert recorder.names()[0] == PRE_COMPACT

    async def test_before_it_the_hooks_hear_sizes_and_reason(self) -> None:
        """context:pre_compact."""
        recorder = Recorder()
        await crossed(recorder)
        [data] = recorder.of(PRE_COMPACT)
        assert set(data) == {"message_count", "tokens", "token_count", "budget", "usage", "reason"}
        assert data["message_count"] == 32
        assert data["tokens"] == data["token_count"] > 900 == data["budget"]
        assert data["usage"] == round(data["tokens"] / 900, 4)
        assert data["reason"] == "must_fit"

    async def test_what_is_told_before_it_is_the_size_of_the_view(self) -> None:
        """As `get_token_count()` had it."""
        made = manager(recorder := Recorder())
        await made.set_messages(tool_session(8))
        tokens = await made.get_token_count()
        await made.get_messages_for_request(900, ScriptedProvider(then=answer))
        assert recorder.of(PRE_COMPACT)[0]["tokens"] == recorder.of(COMPACTION)[0]["before_tokens"] == tokens

    async def test_after_it_the_hooks_hear_what_it_saved(self) -> None:
        """context:post_compact."""
        recorder = Recorder()
        view = await crossed(recorder)
        [data] = recorder.of(POST_COMPACT)
        assert set(data) == {
            "message_count",
            "tokens",
            "token_count",
            "tokens_saved",
            "segments",
            "merged",
            "from_cache",
            "digests",
            "wait_ms",
            "undo",
        }
        assert data["message_count"] == len(view)
        assert data["tokens"] == data["token_count"] == size(view)
        assert data["tokens_saved"] == recorder.of(PRE_COMPACT)[0]["tokens"] - size(view)
        assert data["segments"] > data["merged"] >= 0
        assert (data["from_cache"], data["digests"]) == (0, 0)
        assert data["wait_ms"] >= 0
        assert data["undo"] is False

    async def test_the_compaction_itself_is_told(self) -> None:
        """context:compaction: what other modules and providers listen to."""
        recorder = Recorder()
        view = await crossed(recorder)
        [data] = recorder.of(COMPACTION)
        assert set(data) == {
            "before_tokens",
            "after_tokens",
            "before_messages",
            "after_messages",
            "budget",
            "target_tokens",
            "strategy_level",
            "undo",
        }
        assert (data["before_messages"], data["after_messages"]) == (32, len(view))
        assert data["after_tokens"] == size(view) < data["before_tokens"]
        assert (data["budget"], data["target_tokens"], data["strategy_level"]) == (900, 180, 1)

    async def test_each_new_node_is_told_once(self) -> None:
        """context:include: its content, also over later boundaries."""
        made, recorder = manager(recorder := Recorder()), recorder
        provider = ScriptedProvider(then=answer)
        shown: list[str] = []
        for row in tool_session(24):
            await made.add_message(row)
            view = await made.get_messages_for_request(1_500, provider)
            shown += [node["content"] for node in nodes(view) if node["content"] not in shown]
        told = recorder.of(INCLUDE)
        assert len(recorder.of(COMPACTION)) > 1
        assert [data["content"] for data in told] == shown
        assert {data["source"] for data in told} == {"context-summarize"}
        assert {frozenset(data) for data in told} == {frozenset({"source", "content"})}

    async def test_a_second_boundary_counts_the_rows_of_the_view_before_it(self) -> None:
        """Nodes, pins and what stands verbatim."""
        made, recorder = manager(recorder := Recorder()), recorder
        provider = ScriptedProvider(then=answer)
        await made.set_messages(tool_session(8))
        before = await made.get_messages_for_request(900, provider)
        await made.set_messages([*tool_session(8), *tool_session(6, start=8)])
        await made.get_messages_for_request(900, provider)
        second = recorder.of(COMPACTION)[1]
        assert second["before_messages"] == len(before) + 24

    @pytest.mark.parametrize(("usage", "reason"), [(0.8, "threshold"), (1.1, "must_fit")])
    async def test_the_reason_is_told(self, usage: float, reason: str) -> None:
        """manual is compact()."""
        made = manager(recorder := Recorder())
        await made.set_messages(tool_session(8))
        await made.get_messages_for_request(int(await made.get_token_count() / usage), ScriptedProvider(then=answer))
        assert recorder.of(PRE_COMPACT)[0]["reason"] == reason
        await made.compact()
        assert [data["reason"] for data in recorder.of(PRE_COMPACT)[1:]] in ([], ["manual"])

    async def test_what_came_from_the_cache_and_what_is_a_digest_is_counted(self) -> None:
        """Per boundary."""
        provider = ScriptedProvider(then=answer)
        made = manager(recorder := Recorder(), auto_compact=False)
        await made.set_messages(tool_session(8))
        await made.get_messages_for_request(900, provider)
        await made.clear()
        await made.set_messages([*tool_session(6), user("another end")])
        await made.get_messages_for_request(900, provider)
        cached = recorder.of(POST_COMPACT)[1:]
        digests = Recorder()
        view = await crossed(digests, compaction_strategy="truncate")
        assert digests.of(POST_COMPACT)[0]["digests"] == len(nodes(view)) > 0
        assert all(data["from_cache"] > 0 for data in cached)

    async def test_a_view_over_budget_is_told_with_its_largest_rows(self) -> None:
        """context-summarize:over_budget."""
        made = manager(recorder := Recorder())
        await made.set_messages([{"role": "system", "content": "rule " * 900}, user("hi")])
        await made.get_messages_for_request(300)
        [data] = recorder.of(OVER_BUDGET)
        assert data == {
            "token_count": data["token_count"],
            "budget": 300,
            "largest": [
                {"row": 0, "role": "system", "tokens": data["largest"][0]["tokens"]},
                {"row": 1, "role": "user", "tokens": 4},
            ],
        }
        assert data["token_count"] > data["largest"][0]["tokens"] > 900

    async def test_without_hooks_nothing_is_kept_for_them(self) -> None:
        """No coordinator."""
        made = manager(None)
        await made.set_messages(tool_session(8))
        assert nodes(await made.get_messages_for_request(900, ScriptedProvider(then=answer)))


class TestHooks:
    @pytest.mark.parametrize("raises", [PRE_COMPACT, POST_COMPACT, COMPACTION, INCLUDE, SUMMARY, "all"])
    async def test_a_hook_that_raises_changes_nothing(self, raises: str, caplog: pytest.LogCaptureFixture) -> None:
        """The view is the same, and every event goes out."""
        quiet, loud = Recorder(), Raising(raises)
        with caplog.at_level(logging.WARNING):
            assert await crossed(loud) == await crossed(quiet)
        assert loud.names() == quiet.names()
        assert any("a hook failed" in record.message for record in caplog.records)


class TestWithdrawn:
    async def test_summaries_that_turn_out_too_large_close_the_announcement(self) -> None:
        """A boundary that frees too little is not made: it saved nothing, and says so."""
        made = manager(recorder := Recorder(), min_fold=0.3, segment_tokens=256, keep_recent=2, summary_share=1.0)
        await made.set_messages(tool_session(4, size=900))
        budget = int(await made.get_token_count() / 0.8)
        provider = ScriptedProvider(then=wordy)
        before = await made.get_messages_for_request(budget, provider)
        assert provider.calls > 0
        assert nodes(before) == []
        assert [name for name in recorder.names() if name != SUMMARY] == [PRE_COMPACT, POST_COMPACT]
        [pre], [post] = recorder.of(PRE_COMPACT), recorder.of(POST_COMPACT)
        assert (post["tokens"], post["tokens_saved"]) == (pre["tokens"], 0)
        assert (post["segments"], post["merged"], post["digests"]) == (0, 0, 0)
        assert post["message_count"] == pre["message_count"]
        calls = provider.calls
        assert await made.get_messages_for_request(budget, provider) == before
        assert (provider.calls, len(recorder.of(PRE_COMPACT))) == (calls, 1)

    async def test_what_cannot_be_worth_it_is_not_announced(self) -> None:
        """Nothing is asked for either."""
        made = manager(recorder := Recorder(), min_fold=1.0)
        await made.set_messages(tool_session(8))
        provider = ScriptedProvider(then=answer)
        await made.get_messages_for_request(int(await made.get_token_count() / 0.8), provider)
        assert (recorder.events, provider.calls) == ([], 0)

    async def test_a_cancelled_boundary_is_announced_once(self) -> None:
        """Its retry closes the announcement."""
        made, recorder, provider = await cancelled()
        assert [name for name in recorder.names() if name != SUMMARY] == [PRE_COMPACT]
        provider.go.set()
        await made.get_messages_for_request(900, provider)
        assert len(recorder.of(PRE_COMPACT)) == len(recorder.of(POST_COMPACT)) == len(recorder.of(COMPACTION)) == 1

    @pytest.mark.parametrize("how", ["set", "clear"])
    async def test_a_cancelled_boundary_of_a_history_that_is_gone_is_closed(self, how: str) -> None:
        """Who hears that a compaction begins also hears that it is over."""
        made, recorder, provider = await cancelled()
        await (made.clear() if how == "clear" else made.set_messages([user("else")]))
        provider.go.set()
        await made.get_messages_for_request(LARGE, provider)
        assert len(recorder.of(PRE_COMPACT)) == len(recorder.of(POST_COMPACT)) == 1


class TestLate:
    """Summaries that take longer than `wait_seconds`: here none is waited for at all."""

    async def late(self, usage: float) -> tuple[SummarizingContextManager, Recorder, Gated, int]:
        made = manager(recorder := Recorder(), wait_seconds=0)
        await made.set_messages(tool_session(12))
        budget = int(await made.get_token_count() / usage)
        return made, recorder, Gated(), budget

    async def landed(self, made: SummarizingContextManager) -> None:
        """Until the work under way has ended."""
        tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("context-summarize")]
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)

    async def test_a_view_that_fits_is_sent_as_it_is(self) -> None:
        """The work goes on, is kept, and makes the boundary once it is there."""
        made, recorder, provider, budget = await self.late(0.8)
        for _ in range(3):
            assert await made.get_messages_for_request(budget, provider) == tool_session(12)
        assert [name for name in recorder.names() if name != SUMMARY] == [PRE_COMPACT]
        provider.go.set()
        for _ in range(9):  # merges are asked for when what they join is there
            await self.landed(made)
            view = await made.get_messages_for_request(budget, provider)
            if nodes(view):
                break
        assert nodes(view)
        questions = [str(request.messages[1].content) for request in provider.requests]
        assert len(questions) == len(set(questions))
        assert len(recorder.of(PRE_COMPACT)) == len(recorder.of(POST_COMPACT)) == len(recorder.of(COMPACTION)) == 1
        assert recorder.of(POST_COMPACT)[0]["digests"] == 0
        await made.close()

    async def test_one_that_does_not_fit_shows_digests_until_the_next_boundary(self) -> None:
        """Then the texts that have come meanwhile stand in their place, without a second call."""
        made, recorder, provider, budget = await self.late(1.2)
        view = await made.get_messages_for_request(budget, provider)
        assert size(view) <= budget
        assert recorder.of(POST_COMPACT)[0]["digests"] == len(nodes(view)) > 0
        provider.go.set()
        await self.landed(made)
        assert await made.get_messages_for_request(budget, provider) == view, "nothing changes without a boundary"
        await made.set_messages(tool_session(24))
        await made.get_messages_for_request(budget, provider)
        questions = [str(request.messages[1].content) for request in provider.requests]
        assert len(questions) == len(set(questions))
        await made.close()

    async def test_compact_waits_as_long_as_it_takes(self) -> None:
        """Who asks for it has the time."""
        made, recorder, provider, _ = await self.late(0.8)
        await made.get_messages_for_request(LARGE, provider)
        compacting = asyncio.create_task(made.compact())
        await provider.asked.wait()
        assert not compacting.done()
        provider.go.set()
        assert await compacting > 0
        assert recorder.of(POST_COMPACT)[0]["digests"] == 0
        await made.close()

    async def test_the_announcement_of_a_late_boundary_is_closed_with_its_history(self) -> None:
        """clear() while the work is under way."""
        made, recorder, provider, budget = await self.late(0.8)
        await made.get_messages_for_request(budget, provider)
        await made.clear()
        await made.get_messages_for_request(budget, provider)
        assert len(recorder.of(PRE_COMPACT)) == len(recorder.of(POST_COMPACT)) == 1
        await made.close()


class TestNodes:
    def node(self, level: int, index: int, first: int, end: int, *children: Node) -> Node:
        return Node(f"{level}/{index}/{first}", level, index, first, end, 10, 64, children)

    def test_regular_segments_go_on_before_a_rest_over_rows(self) -> None:
        """Else at the frontier: a rest over nodes stands for regular ones."""
        a, b = self.node(0, 0, 0, 4), self.node(0, 1, 4, 8)
        assert regular_frontier([], 0) == 0
        assert regular_frontier([a, b], 8) == 8
        assert regular_frontier([a, self.node(0, -1, 4, 7)], 7) == 4
        assert regular_frontier([self.node(1, -1, 0, 8, a, b)], 8) == 8

    def test_the_next_segment_follows_the_last_regular_one(self) -> None:
        """At every level, and inside rests."""
        a, b = self.node(0, 0, 0, 4), self.node(0, 1, 4, 8)
        assert next_index([], 6) == 0
        assert next_index([self.node(0, -1, 0, 3)], 6) == 0
        assert next_index([a, b, self.node(0, -1, 8, 9)], 6) == 2
        assert next_index([self.node(1, 1, 0, 9)], 6) == 12
        assert next_index([self.node(2, 0, 0, 9)], 3) == 9
        assert next_index([self.node(1, -1, 0, 8, a, b)], 6) == 2


class TestSummaryRole:
    @pytest.mark.parametrize("role", ["system", "user"])
    async def test_summaries_stand_in_the_role_that_is_asked_for(self, role: str) -> None:
        """summary_role."""
        view = await crossed(Recorder(), summary_role=role)
        assert {node["role"] for node in nodes(view)} == {role}
        for row in view:
            Message(**row)
        assert FRAME_WORDS in nodes(view)[0]["content"]

    async def test_a_history_without_user_messages_opens_with_a_user_row(self) -> None:
        """Rule 6, once a boundary has been made."""
        made = manager(Recorder())
        for at in range(20):
            for row in (call(f"c{at}", "x", n=at), result(f"c{at}", "value " * 40), assistant("next")):
                await made.add_message(row)
        view = await made.get_messages_for_request(900, ScriptedProvider(then=answer))
        assert next(row["role"] for row in view if row["role"] != "system") == "user"
        assert size(view) <= 900
