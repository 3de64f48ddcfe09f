"""Texts of nodes: from the store, else from the provider, else a digest; joined, shared, and said in events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError, RateLimitError
from amplifier_core.message_models import ChatRequest, ChatResponse

from context_summarize.config import Config
from context_summarize.core.frames import show_node
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.events import FAILURE, SUMMARY
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import MAX_REFUSALS, SummaryRegistry
from context_summarize.summaries.request import Job, Target
from context_summarize.testing import ScriptedProvider, tool_session
from context_summarize.transcript.rows import RenderedRow
from tests.support.services import services

PROMPTS = load_prompts("default")
ANSWER = "Goal: orders were looked up. State: done."


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


class Hooks:
    """The host's hooks, as far as an outbox knows them."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, dict[str, Any]]] = []

    async def emit(self, name: str, data: dict[str, Any]) -> None:
        self.emitted.append((name, data))


class Scene:
    """A history that is cut into segments, and everything that gets the texts of their nodes."""

    def __init__(
        self,
        *script: Any,
        store: MemoryStore | None = None,
        gate: asyncio.Event | None = None,
        rows: Sequence[JsonRow] | None = None,
        **settings: Any,
    ):
        config = Config(**settings)
        self.provider = ScriptedProvider(script, then=ANSWER, gate=gate)
        self.target: Target | None = Target(self.provider, "main", "small")
        self.store = store or MemoryStore()
        self.hooks = Hooks()
        self.clock = SimpleNamespace(time=5.0)
        shared = services(
            config,
            count,
            store=self.store,
            hooks=self.hooks,
            clock=lambda: float(self.clock.time),
            sleep=self.sleep,
        )
        self.outbox = shared.outbox
        self.summarizer = Summarizer(shared)
        self.tasks = SummaryRegistry(
            shared,
            self.summarizer,
            lambda builder, node, summary: show_node(
                builder.history, node, summary, PROMPTS.frame.fill, "system", count
            ),
        )
        self.history = History()
        for raw in tool_session(24, size=300) if rows is None else rows:
            self.history.add(analyse(normalise(raw)))
        self.builder = NodeBuilder(self.history, PROMPTS.segment.hash, PROMPTS.merge.hash, None)
        self.builder.start(512, 100, first_group=0, first_index=0)
        self.builder.advance()
        self.leaves = self.builder.leaves
        self.merged = self.builder.merge(self.leaves[:3], 0)

    async def sleep(self, seconds: float) -> None:
        self.clock.time += seconds

    async def get(self, node: Node) -> Summary:
        """As a compaction does: fallbacks of an earlier one are forgotten, and stand in where nothing can be had."""
        self.tasks.begin()
        await self.tasks.get([node], self.builder, self.target, None)
        shown = self.tasks.shown(node)
        assert shown is not None
        assert self.tasks.size_of(node) == shown.tokens
        return shown.summary

    async def events(self) -> list[tuple[str, dict[str, Any]]]:
        await self.outbox.flush()
        return self.hooks.emitted


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class TestLeaf:
    async def test_a_text_in_the_store_costs_no_call(self) -> None:
        """Rule 10: a provider call is made once per key."""
        scene = Scene()
        made = await scene.get(scene.leaves[0])
        assert (made.text, made.key, scene.provider.calls) == (ANSWER, scene.leaves[0].key, 1)
        again = await scene.get(scene.leaves[0])
        assert (again, scene.provider.calls) == (made, 1)
        assert not scene.tasks.is_from_store(made.key)
        fresh = Scene(store=scene.store)
        assert (await fresh.get(fresh.leaves[0]), fresh.provider.calls) == (made, 0)
        assert fresh.tasks.is_from_store(made.key)

    async def test_without_a_provider_a_digest_stands_in_and_is_not_stored(self) -> None:
        """It is tried again at the next boundary."""
        scene = Scene()
        scene.target = None
        made = await scene.get(scene.leaves[0])
        assert made.fallback
        assert made.text.startswith(FALLBACK_LINE)
        assert "ORD00000" in made.text
        assert made.tokens == count(made.text) < made.source_tokens
        assert await scene.store.get([scene.leaves[0].key]) == {}
        assert await scene.events() == []

    async def test_a_digest_is_tried_again_and_then_replaced(self) -> None:
        """A failure is not remembered as a text."""
        scene = Scene(AuthenticationError("401"))
        assert (await scene.get(scene.leaves[0])).fallback
        scene.clock.time += 60
        made = await scene.get(scene.leaves[0])
        assert (made.fallback, made.text) == (False, ANSWER)
        assert await scene.store.get([made.key]) == {made.key: made}

    async def test_a_summariser_that_is_cancelled_from_within_leaves_a_digest(self) -> None:
        """Rule 8: a provider whose own call was cancelled may not cost the host its request."""

        def cancelled(request: ChatRequest) -> str:
            raise asyncio.CancelledError

        scene = Scene(cancelled)
        assert (await scene.get(scene.leaves[0])).fallback

    async def test_closing_the_flight_leaves_a_digest_to_who_still_waits(self) -> None:
        """Rule 8: who asked was not cancelled."""
        scene = Scene(gate=asyncio.Event())
        task = asyncio.create_task(scene.get(scene.leaves[0]))
        await settle()
        await scene.tasks.close()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, Summary)
        assert outcome.fallback

    async def test_nothing_is_started_after_the_end(self) -> None:
        scene = Scene()
        await scene.tasks.close()
        assert (await scene.get(scene.leaves[0])).fallback
        assert scene.provider.calls == 0


class TestRefusals:
    async def test_a_key_refused_three_times_is_not_asked_for_again(self) -> None:
        """It stays a fallback until refusals are forgotten; other keys are not concerned."""
        assert MAX_REFUSALS == 3
        scene = Scene(*[""] * 6)
        for asked in (2, 4, 6, 6):
            assert (await scene.get(scene.leaves[0])).fallback
            assert scene.provider.calls == asked
        assert (await scene.get(scene.leaves[1])).text == ANSWER
        scene.tasks.forget_refusals()
        assert (await scene.get(scene.leaves[0])).text == ANSWER

    async def test_asking_what_is_known_starts_nothing(self) -> None:
        """Neither a text nor a size nor a row."""
        scene = Scene()
        node, before = scene.leaves[0], asyncio.all_tasks()
        assert (scene.tasks.summary(node), scene.tasks.size_of(node), scene.tasks.shown(node)) == (None, None, None)
        assert not scene.tasks.is_known(node)
        await settle()
        assert (asyncio.all_tasks(), scene.provider.calls) == (before, 0)


class TestWaiting:
    async def test_what_was_late_once_is_not_waited_for_again(self) -> None:
        """The work goes on, and its result is there for the next compaction."""
        gate = asyncio.Event()
        scene = Scene(gate=gate)
        node = scene.leaves[0]
        assert await scene.tasks.get([node], scene.builder, scene.target, 0.0) == [node]
        assert await scene.tasks.get([node], scene.builder, scene.target, 3_600.0) == [node], "at once"
        gate.set()
        await scene.tasks.settled([node.key])
        assert scene.tasks.summary(node) is not None
        assert await scene.tasks.get([node], scene.builder, scene.target, 0.0) == []
        assert scene.provider.calls == 1

    async def test_what_was_late_and_failed_is_waited_for_when_it_is_asked_for_again(self) -> None:
        """It is other work then."""
        gate = asyncio.Event()
        scene = Scene(AuthenticationError("401"), gate=gate)
        node = scene.leaves[0]
        assert await scene.tasks.get([node], scene.builder, scene.target, 0.0) == [node]
        gate.set()
        await scene.tasks.settled([node.key])
        scene.clock.time += 60
        assert await scene.tasks.get([node], scene.builder, scene.target, None) == []
        assert scene.tasks.summary(node) is not None

    async def test_what_is_made_ahead_has_its_row(self) -> None:
        """A row takes a few milliseconds: the next request need not make it."""
        scene = Scene()
        scene.tasks.start(scene.merged, scene.builder, scene.target)
        await scene.tasks.settled([scene.merged.key])
        [shown] = scene.tasks.rows([scene.merged])
        assert shown.node is scene.merged

    async def test_segments_of_equal_text_share_a_call_but_not_a_row(self) -> None:
        """Frames name the messages that they stand for."""
        scene = Scene()
        first = scene.leaves[0]
        other = replace(first, first_group=first.first_group + 4, end_group=first.end_group + 4)
        await scene.tasks.get([first, other], scene.builder, scene.target, None)
        one, two = scene.tasks.shown(first), scene.tasks.shown(other)
        assert one is not None
        assert two is not None
        assert one.summary is two.summary
        assert one.row != two.row
        assert scene.provider.calls == 1


class TestSharing:
    async def test_all_who_ask_at_once_share_one_call(self) -> None:
        """Rule 10: concurrent requests share it."""
        gate = asyncio.Event()
        scene = Scene(gate=gate)
        tasks = [asyncio.create_task(scene.get(scene.leaves[0])) for _ in range(4)]
        await settle()
        gate.set()
        texts = {made.text for made in await asyncio.gather(*tasks)}
        assert (texts, scene.provider.calls) == ({ANSWER}, 1)
        assert [name for name, _ in await scene.events()] == [SUMMARY]

    async def test_only_what_is_asked_for_soon_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hundreds of segments may wait for a provider: their texts are not made, and held, before their turn."""
        gate = asyncio.Event()
        scene = Scene(gate=gate, max_concurrency=1, rows=[*tool_session(60, size=300)])
        read: list[Node] = []
        source = scene.builder.source

        def noted(node: Node) -> tuple[RenderedRow, ...]:
            read.append(node)
            return source(node)

        monkeypatch.setattr(scene.builder, "source", noted)
        wanted = scene.leaves[:12]
        asked = asyncio.create_task(scene.tasks.get(wanted, scene.builder, scene.target, None))
        for _ in range(20):
            await settle()
        assert scene.provider.calls == 1
        assert read == wanted[:1]
        gate.set()
        assert await asked == []
        assert read == wanted


class TestMerge:
    async def test_children_are_made_then_joined_by_one_call(self) -> None:
        """Level n stands for neighbouring nodes of the level below."""
        scene = Scene("Goal: one.", "Goal: two.", "Goal: three.", "Goal: all.")
        made = await scene.get(scene.merged)
        assert (made.text, made.level, made.key, scene.provider.calls) == ("Goal: all.", 1, scene.merged.key, 4)
        system, shown = (str(message.content) for message in scene.provider.requests[-1].messages)
        body = "## Summary 1 of 3\nGoal: one.\n\n## Summary 2 of 3\nGoal: two.\n\n## Summary 3 of 3\nGoal: three."
        assert body in shown
        assert "3 summaries" in system
        assert set(await scene.store.get([node.key for node in (*scene.leaves[:3], scene.merged)])) == {
            *(leaf.key for leaf in scene.leaves[:3]),
            scene.merged.key,
        }

    async def test_a_compaction_meanwhile_takes_no_child_from_a_merge(self) -> None:
        """What no view shows is let go of; the merge that still waits for a sibling finds it in the store."""
        first = Scene()
        await first.get(first.leaves[0])
        gate = asyncio.Event()
        scene = Scene(store=first.store, gate=gate)
        scene.tasks.start(scene.merged, scene.builder, scene.target)
        await settle()
        assert scene.tasks.summary(scene.leaves[0]) is not None
        scene.tasks.compacted([])
        gate.set()
        await scene.tasks.settled([scene.merged.key])
        assert scene.tasks.summary(scene.merged) is not None
        assert scene.provider.calls == 3

    async def test_a_wait_outlives_the_compaction_of_another_history(self) -> None:
        """A status line may take up the record of a new history while a request about the old one waits."""
        first = Scene()
        await first.get(first.leaves[0])
        gate = asyncio.Event()
        scene = Scene(store=first.store, gate=gate)
        waiting = asyncio.create_task(scene.tasks.get(scene.leaves[:2], scene.builder, scene.target, None))
        await settle()
        scene.tasks.compacted([])
        gate.set()
        assert await waiting == []
        assert all(scene.tasks.shown(node) for node in scene.leaves[:2])

    async def test_a_merge_in_the_store_asks_for_no_child(self) -> None:
        """A restart finds the top of the tree."""
        scene = Scene()
        await scene.get(scene.merged)
        fresh = Scene(store=scene.store)
        assert (await fresh.get(fresh.merged)).text == ANSWER
        assert (fresh.provider.calls, fresh.tasks.is_from_store(fresh.merged.key)) == (0, True)

    async def test_a_merge_with_a_digest_below_is_joined_by_code_and_not_stored(self) -> None:
        """A node with a digest anywhere below it is itself a digest."""
        scene = Scene(ANSWER, ANSWER, AuthenticationError("401"))
        await scene.tasks.get(scene.leaves[1:3], scene.builder, scene.target, None)
        made = await scene.get(scene.merged)
        assert made.fallback
        assert scene.provider.calls == 3, "no merge is asked for"
        assert FALLBACK_LINE in made.text
        assert ANSWER in made.text, "the children that have a text are in it"
        assert await scene.store.get([scene.merged.key]) == {}
        assert len(await scene.store.get([leaf.key for leaf in scene.leaves])) == 2
        scene.clock.time += 60
        again = await scene.get(scene.merged)
        assert (again.fallback, again.text) == (False, ANSWER)

    async def test_a_digest_two_levels_below_makes_a_digest_too(self) -> None:
        """Anywhere below it."""

        def fails_on_the_first(request: ChatRequest) -> str:
            if "order ORD00000" in str(request.messages[1].content):
                raise AuthenticationError("401")
            return ANSWER

        scene = Scene(*[fails_on_the_first] * 4)
        top = scene.builder.merge([scene.merged, scene.leaves[3]], 0)
        assert (await scene.get(top)).fallback
        assert await scene.store.get([top.key, scene.merged.key]) == {}

    async def test_a_merge_that_fails_is_joined_by_code(self) -> None:
        """The children's texts stand, within the length of the node."""
        scene = Scene(ANSWER, ANSWER, ANSWER, AuthenticationError("401"))
        made = await scene.get(scene.merged)
        assert made.fallback
        assert made.text.count(ANSWER) == 3
        assert made.tokens <= scene.merged.summary_tokens


class TestEvents:
    async def test_a_summary_is_told_with_every_key(self) -> None:
        """The payload of the design."""
        blocks = [{"type": "text", "text": ANSWER}]
        usage = {"input_tokens": 900, "output_tokens": 20, "total_tokens": 920, "cost_usd": Decimal("0.25")}
        response = ChatResponse.model_validate({"content": blocks, "usage": usage, "metadata": {"model": "small-1"}})

        def slow(request: ChatRequest) -> ChatResponse:
            scene.clock.time += 1.5
            return response

        scene = Scene(slow)
        made = await scene.get(scene.leaves[0])
        [(name, data)] = await scene.events()
        assert name == SUMMARY == "context-summarize:summary"
        assert data == {
            "key": scene.leaves[0].key,
            "level": 0,
            "source_tokens": made.source_tokens,
            "summary_tokens": made.tokens,
            "provider": "main",
            "model": "small-1",
            "duration_ms": 1_500,
            "attempts": 1,
            "usage": {"input_tokens": 900, "output_tokens": 20},
            "cost_usd": "0.25",
        }

    async def test_a_failure_is_told_with_every_key(self, caplog: pytest.LogCaptureFixture) -> None:
        """What may go away is a warning."""
        scene = Scene(RateLimitError("slow", retry_after=300.0))
        with caplog.at_level(logging.WARNING):
            await scene.get(scene.leaves[0])
        [(name, data)] = await scene.events()
        assert name == FAILURE == "context-summarize:failure"
        assert data == {
            "key": scene.leaves[0].key,
            "level": 0,
            "kind": "rate_limit",
            "error": "RateLimitError: slow",
            "attempts": 1,
            "retry_in_s": 300.0,
        }
        assert [record.levelname for record in caplog.records] == ["WARNING"]


class TestLife:
    """What a registry keeps from one compaction to the next, over a new history, and while the host has cancelled."""

    async def test_what_no_view_shows_is_let_go_of_and_what_one_shows_is_kept(self) -> None:
        scene = Scene()
        kept, gone = scene.leaves[:2]
        await scene.tasks.get([kept, gone], scene.builder, scene.target, None)
        shown = scene.tasks.rows([kept, gone])
        assert [item.node for item in shown] == [kept, gone]
        scene.tasks.compacted(shown[:1])
        assert (scene.tasks.is_known(kept), scene.tasks.is_known(gone)) == (True, False)
        assert scene.tasks.rows([gone, kept]) == shown[:1]
        await scene.tasks.get([gone], scene.builder, scene.target, None)
        assert (scene.provider.calls, scene.tasks.is_from_store(gone.key)) == (2, True)

    async def test_what_is_shown_counts_as_known_without_having_been_asked_for(self) -> None:
        """As after a restart; a fallback and one line do not."""
        scene = Scene()
        await scene.tasks.get(scene.leaves[:1], scene.builder, scene.target, None)
        await scene.tasks.place(scene.leaves[1:2], scene.builder)
        text, fallback = scene.tasks.rows(scene.leaves[:2])
        fresh = Scene()
        fresh.tasks.compacted([text, fallback])
        assert fresh.tasks.shown(text.node) == text
        assert fresh.tasks.shown(fallback.node) is None
        fresh = Scene()
        fresh.tasks.compacted([replace(text, line=True)])
        assert fresh.tasks.shown(text.node) is None

    async def test_refusals_are_not_forgotten_with_a_compaction(self) -> None:
        scene = Scene(*[""] * 6)
        for _ in range(MAX_REFUSALS):
            await scene.get(scene.leaves[0])
            scene.tasks.compacted([])
        assert (await scene.get(scene.leaves[0])).fallback
        assert scene.provider.calls == 2 * MAX_REFUSALS

    async def test_a_fallback_is_made_once_while_nobody_can_be_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Compaction after compaction that shows it; the rows below a merge are read once."""
        scene = Scene()
        scene.target = None
        read: list[Node] = []
        source = scene.builder.source

        def noted(node: Node) -> tuple[RenderedRow, ...]:
            read.append(node)
            return source(node)

        monkeypatch.setattr(scene.builder, "source", noted)
        first = await scene.get(scene.merged)
        for _ in range(3):
            scene.tasks.compacted(scene.tasks.rows([scene.merged]))
            assert await scene.get(scene.merged) is first
        assert read == scene.leaves[:3]

    async def test_a_fallback_stands_in_until_the_next_compaction_begins(self) -> None:
        scene = Scene()
        node = scene.leaves[0]
        await scene.tasks.place([node], scene.builder)
        shown = scene.tasks.shown(node)
        assert shown is not None
        assert shown.summary.fallback
        assert scene.tasks.is_known(node)
        scene.tasks.begin()
        assert not scene.tasks.is_known(node)
        assert scene.tasks.shown(node) is None

    async def test_a_summary_that_is_known_is_not_replaced_by_a_fallback(self) -> None:
        scene = Scene()
        made = await scene.get(scene.leaves[0])
        await scene.tasks.place(scene.leaves[:1], scene.builder)
        [shown] = scene.tasks.rows(scene.leaves[:1])
        assert shown.summary is made

    async def test_a_new_history_has_no_rows_but_keeps_what_was_made(self) -> None:
        """Calls under way still fill the store, and may be waited for again."""
        gate = asyncio.Event()
        scene = Scene(gate=gate)
        known, late = scene.leaves[:2]
        await scene.tasks.get([known, late], scene.builder, scene.target, 0.0)
        scene.tasks.forget_history()
        assert scene.tasks.summary(late) is None
        gate.set()
        assert await scene.tasks.get([known, late], scene.builder, scene.target, None) == []
        scene.tasks.forget_history()
        assert scene.tasks.rows([known, late]) == []
        assert scene.tasks.is_known(known)
        await scene.tasks.get([known, late], scene.builder, scene.target, None)
        assert len(scene.tasks.rows([known, late])) == 2
        assert scene.provider.calls == 2

    async def test_while_the_host_has_cancelled_nobody_waits_and_the_work_goes_on(self) -> None:
        gate = asyncio.Event()
        scene = Scene(gate=gate)
        nodes = scene.leaves[:1]
        assert not scene.tasks.is_stopped
        scene.tasks.stop_waiting()
        assert scene.tasks.is_stopped
        assert await asyncio.wait_for(scene.tasks.get(nodes, scene.builder, scene.target, None), 30) == nodes
        assert scene.tasks.summary(nodes[0]) is None, "not late: nobody has waited"
        scene.tasks.resume_waiting()
        assert not scene.tasks.is_stopped
        gate.set()
        assert await asyncio.wait_for(scene.tasks.get(nodes, scene.builder, scene.target, None), 30) == []
        assert scene.provider.calls == 1

    async def test_what_is_found_asks_no_provider_and_waits_for_none(self) -> None:
        """Stored texts and fallbacks; what is under way stays so."""
        gate = asyncio.Event()
        scene = Scene(gate=gate)
        under_way, unasked = scene.leaves[:2]
        await scene.tasks.get([under_way], scene.builder, scene.target, 0.0)
        await asyncio.wait_for(scene.tasks.place([under_way, unasked], scene.builder), 30)
        assert all(shown.summary.fallback for shown in scene.tasks.rows([under_way, unasked]))
        assert (len(scene.tasks.rows([under_way, unasked])), scene.provider.calls) == (2, 1)
        gate.set()
        await scene.tasks.settled([under_way.key])
        await scene.tasks.place([under_way], scene.builder)
        [shown] = scene.tasks.rows([under_way])
        assert not shown.summary.fallback

    async def test_what_is_stored_is_found_without_a_provider(self) -> None:
        scene = Scene()
        made = await scene.get(scene.leaves[0])
        fresh = Scene(store=scene.store)
        await fresh.tasks.place(fresh.leaves[:1], fresh.builder)
        [shown] = fresh.tasks.rows(fresh.leaves[:1])
        assert (shown.summary, fresh.provider.calls) == (made, 0)
        assert fresh.tasks.summary(fresh.leaves[0]) == made
        fresh.tasks.forget_history()
        assert fresh.tasks.summary(fresh.leaves[0]) == made

    async def test_an_error_of_our_own_leaves_a_fallback_and_is_logged_without_secrets(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Rule 8: whatever goes wrong while a summary is made costs that summary only."""
        scene = Scene()
        token = "ghp_" + "Ab1" * 12

        async def broken(job: Job, target: Target) -> Summary:
            raise ValueError(f"no row for {token}")

        monkeypatch.setattr(scene.summarizer, "make", broken)
        assert (await scene.get(scene.leaves[0])).fallback
        assert "a summary could not be made" in caplog.text
        assert token not in caplog.text
