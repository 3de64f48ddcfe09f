"""The registry: each key is asked for once, shared by all who wait, stored, and stood in for by a fallback."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError, RateLimitError
from amplifier_core.message_models import ChatRequest

from context_summarize.config import Config
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.segments import Cutting, Segments, source
from context_summarize.events import FAILURE
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.stores import MemoryStore, SummaryStore
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.jobs import Target
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.registry import MAX_REFUSALS, SummaryRegistry
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Clock, Recorder
from tests.support.rows import tool_session
from tests.support.services import services

PROMPTS = load_prompts("default")
ANSWER = "Goal: orders were looked up. State: done."
DOWN = AuthenticationError("401")
TOKEN = "ghp_" + "Ab1" * 12


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


class Scene:
    """A history that is cut into segments, and everything that gets the texts of their nodes."""

    def __init__(
        self, *script: Any, store: SummaryStore | None = None, gate: asyncio.Event | None = None, **settings: Any
    ) -> None:
        self.provider = ScriptedProvider(script, then=ANSWER, gate=gate)
        self.target: Target | None = Target(self.provider, "main", "small")
        self.store, self.hooks, self.clock = store or MemoryStore(), Recorder(), Clock()
        shared = services(
            Config(**settings), count, store=self.store, hooks=self.hooks, clock=self.clock, sleep=self.clock.sleep
        )
        self.outbox, self.cancelled, self.shown = shared.outbox, False, list[Node]()
        self.tasks = SummaryRegistry(shared, Summarizer(shared), lambda: self.cancelled)
        self.log = Log(count)
        for raw in tool_session(24, size=300):
            self.log.add(analyse(normalise(raw)))
        self.segments = Segments(self.log, Cutting(PROMPTS.segment.hash, PROMPTS.merge.hash, 512, 100), 0)
        self.segments.take_in()
        self.leaves = self.segments.leaves
        self.merged = self.segments.merge(self.leaves[:3])

    async def get(self, *nodes: Node, seconds: float | None = None) -> list[Node]:
        """The nodes whose summaries are late."""
        await asyncio.wait_for(self.tasks.get(nodes, self.log, self.target, seconds, self.tasks.stop), 30)
        return [node for node in nodes if self.tasks.known(node) is None]

    async def text(self, node: Node) -> Summary:
        """As a compaction does: fallbacks of an earlier one are forgotten, and stand in where nothing can be had."""
        self.tasks.begin()
        assert await self.get(node) == []
        shown = self.tasks.shown(node, self.log)
        assert shown is not None
        assert self.tasks.known(node) == shown.summary
        return shown.summary

    async def stored(self, *nodes: Node) -> list[Node]:
        """Those of these nodes whose texts the store has."""
        found = await self.store.get([node.key for node in nodes])
        return [node for node in nodes if node.key in found]

    async def events(self) -> list[tuple[str, dict[str, Any]]]:
        """What hooks have heard, beside the announcements of calls."""
        await self.outbox.flush()
        return [(name, data) for name, data in self.hooks.events if not name.startswith("provider:")]


def noted(read: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """Note whose rows are read."""

    def source_of(log: Log, node: Node) -> Any:
        read.append(node)
        return source(log, node)

    monkeypatch.setattr("context_summarize.summaries.jobs.source", source_of)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class TestOneSummary:
    async def test_only_as_many_as_may_be_asked_at_once_are_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hundreds of segments may wait for a provider: their texts are not made, and held, before their turn."""
        gate, read = asyncio.Event(), list[Node]()
        scene = Scene(gate=gate, max_concurrency=1)
        noted(read, monkeypatch)
        asked = asyncio.create_task(scene.get(*scene.leaves[:4]))
        await settle()
        assert (scene.provider.calls, read) == (1, scene.leaves[:1])
        gate.set()
        assert await asked == []
        assert read == scene.leaves[:4]


class TestMerge:
    async def test_children_are_made_then_joined_by_one_call(self) -> None:
        """Level n stands for neighbouring nodes of the level below; a restart finds the top of the tree."""
        scene = Scene("Goal: one.", "Goal: two.", "Goal: three.", "Goal: all.")
        made = await scene.text(scene.merged)
        assert (made.text, made.level, made.key, scene.provider.calls) == ("Goal: all.", 1, scene.merged.key, 4)
        system, shown = (str(message.content) for message in scene.provider.requests[-1].messages)
        body = "## Summary 1 of 3\nGoal: one.\n\n## Summary 2 of 3\nGoal: two.\n\n## Summary 3 of 3\nGoal: three."
        assert body in shown
        assert "3 summaries" in system
        tree = (*scene.leaves[:3], scene.merged)
        assert await scene.stored(*tree) == list(tree)
        fresh = Scene(store=scene.store)
        assert (await fresh.text(fresh.merged), fresh.provider.calls) == (made, 0)

    async def test_nothing_is_merged_from_a_fallback(self) -> None:
        """A node with a fallback anywhere below it is itself one, joined by code, and not stored."""

        def fails_on_the_first(request: ChatRequest) -> str:
            if "order ORD00000" in str(request.messages[1].content):
                raise DOWN
            return ANSWER

        scene = Scene(*[fails_on_the_first] * 4)
        await scene.get(*scene.leaves[1:3])
        top = scene.segments.merge([scene.merged, scene.leaves[3]])
        made = await scene.text(top)
        assert made.fallback
        assert FALLBACK_LINE in made.text
        assert ANSWER in made.text, "the children that have a text are in it"
        assert await scene.stored(top, scene.merged, *scene.leaves[:3]) == scene.leaves[1:3]
        scene.clock.time += 60
        assert (await scene.text(top)).text == ANSWER


class TestFallbacks:
    async def test_a_key_whose_answers_were_refused_three_times_is_not_asked_for_again(self) -> None:
        """Nor after a compaction; other keys are not concerned, and a cleared session begins anew."""
        scene = Scene(*[""] * 6)
        leaf = scene.leaves[0]
        for asked in (2, 4, 6, 6):
            assert (await scene.text(leaf)).fallback
            assert scene.provider.calls == asked
            scene.tasks.compacted([], scene.log)
        assert MAX_REFUSALS == 3
        assert (await scene.text(scene.leaves[1])).text == ANSWER
        scene.tasks.forget_refusals()
        assert (await scene.text(leaf)).text == ANSWER


class TestWhatGoesWrong:
    async def test_an_error_of_our_own_leaves_a_fallback(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Whatever goes wrong while a summary is made costs that summary only, and is logged without secrets."""
        scene = Scene()

        async def broken(*_: Any) -> Summary:
            raise ValueError(f"no row for {TOKEN}")

        monkeypatch.setattr(Summarizer, "make", broken)
        assert (await scene.text(scene.leaves[0])).fallback
        assert "a summary could not be made" in caplog.text
        assert TOKEN not in caplog.text


class TestEvents:
    async def test_a_failure_is_told_with_every_key(self, caplog: pytest.LogCaptureFixture) -> None:
        """What may go away is a warning, each time; what lasts is an error, once until a summary is made."""
        scene = Scene(RateLimitError("slow", retry_after=300.0), DOWN, DOWN, ANSWER, DOWN)
        for at in (0, 1, 1, 2, 3):
            scene.clock.time += 10_000
            with caplog.at_level(logging.WARNING):
                await scene.text(scene.leaves[at])
        told = await scene.events()
        assert told[0] == (
            FAILURE,
            {
                "key": scene.leaves[0].key,
                "level": 0,
                "kind": "rate_limit",
                "error": "RateLimitError: slow",
                "attempts": 1,
                "retry_in_s": 300.0,
            },
        )
        assert [data.get("kind", "made") for _, data in told] == ["rate_limit", "auth", "made", "auth"]
        assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "ERROR"]


class TestWaiting:
    async def test_what_was_late_once_is_not_waited_for_again(self) -> None:
        """Unless it failed and is asked for anew; the work goes on, and is there for the next compaction."""
        gate = asyncio.Event()
        scene = Scene(DOWN, gate=gate)
        node = scene.leaves[0]
        for seconds in (0.0, 3_600.0):
            assert await scene.get(node, seconds=seconds) == [node], "at once"
        gate.set()
        await scene.tasks.settled([node.key])
        scene.clock.time += 60
        assert await scene.get(node, seconds=3_600.0) == []
        assert scene.tasks.known(node)
        assert scene.provider.calls == 2


class TestLife:
    async def test_what_no_view_shows_is_let_go_of_and_what_one_shows_is_kept(self) -> None:
        """It is found in the store again."""
        scene = Scene()
        kept, gone = scene.leaves[:2]
        await scene.get(kept, gone)
        shown = [row for node in (kept, gone) if (row := scene.tasks.shown(node, scene.log))]
        scene.tasks.compacted(shown[:1], scene.log)
        assert (bool(scene.tasks.known(kept)), scene.tasks.known(gone)) == (True, None)
        assert scene.tasks.shown(kept, scene.log) is shown[0]
        await scene.get(gone)
        assert scene.tasks.shown(gone, scene.log) is not shown[1]
        assert (scene.provider.calls, scene.tasks.is_from_store(gone.key)) == (2, True)
        assert not scene.tasks.is_from_store(kept.key)

    async def test_a_new_history_has_no_rows_but_keeps_what_was_made(self) -> None:
        """Calls under way still fill the store, and may be waited for again; no fallback stands in."""
        gate = asyncio.Event()
        scene = Scene(gate=gate)
        late, placed = scene.leaves[:2]
        assert await scene.get(late, seconds=0.0) == [late]
        await scene.tasks.place([placed], scene.log)
        scene.tasks.begin_anew()
        assert not scene.tasks.known(placed)
        gate.set()
        assert await scene.get(late, seconds=3_600.0) == []
        scene.tasks.begin_anew()
        assert scene.tasks.known(late)
        assert scene.tasks.shown(late, scene.log) is not None
        assert await scene.get(late) == []
        assert scene.provider.calls == 1
