"""A manager's life for the state machine: its provider, its host, and the rules that hold after each step."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError, RateLimitError
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.testing import MemoryStore, ScriptedProvider
from tests.properties.rules import Rows, check_fits, check_rules, marks_of, rendered
from tests.properties.strategies import histories
from tests.support.gated import question
from tests.support.recorder import Clock, SlowHooks
from tests.support.saved import saved
from tests.support.views import untimed

BUDGETS = [250, 400, 800, 2_000, 8_000]
FAULTS: dict[str, BaseException | str] = {
    "unavailable": ProviderUnavailableError("down", provider="moody"),
    "rate": RateLimitError("slow down", provider="moody", retry_after=3.0),
    "auth": AuthenticationError("no key", provider="moody"),
    "cancelled": asyncio.CancelledError(),
    "bug": RuntimeError("a bug of the provider's"),
    "empty": "",
    "too long": "word " * 20_000,
}
"""What a provider in trouble raises or answers."""
PAUSE = 5
"""Requests between two compactions whose views do not fit."""
AT_ONCE = ["view", "view", "compact", "undo", "pin", "unpin", "preview", "should_compact", "count"]
"""What a host does while rows come."""


class Moody(ScriptedProvider):
    """Answers, fails or hangs as it is told; every answer is another one, so that no two merges look alike."""

    def __init__(self) -> None:
        super().__init__(then=self._say, name="moody", context_window=200_000, max_output_tokens=4_000)
        self.mood = "good"
        self.go = asyncio.Event()
        self.answered: list[str] = []
        self.written = 0

    async def _say(self, request: Any) -> str:
        if self.mood == "hang":
            await self.go.wait()
        fault = FAULTS.get(self.mood)
        if isinstance(fault, BaseException):
            raise fault
        if fault is not None:
            return fault
        self.answered.append(question(request))
        self.written += 1  # no two texts are equal, also where answers were lost
        return f"Goal: part {self.written}."


async def steps(many: int, until: Callable[[], bool] = lambda: False) -> None:
    """Let the event loop turn so many times."""
    for _ in range(many):
        if until():
            return
        await asyncio.sleep(0)


def lasting(view: Rows) -> Rows:
    """The view without rows of hooks and of the moment: a record does not say whether they are shown or shortened."""
    return [row for row in view if marks_of(row).get("source") != "hook" and not row.get("ephemeral")]


class Life(RuleBasedStateMachine):
    """One manager's life, with what it must be like kept beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.manager: SummarizingContextManager | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run this to its end; nothing may hang."""
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    @initialize(
        rows=histories(12),
        settings=st.fixed_dictionaries(
            {
                "keep_recent": st.sampled_from([0, 2, 10]),
                "wait_seconds": st.sampled_from([0, 60, 60]),
                "summary_share": st.sampled_from([0.1, 0.25]),
                "prefetch": st.booleans(),
            },
            optional={"segment_tokens": st.just(64)},
        ),
        in_file=st.booleans(),
    )
    def begin(self, rows: Rows, settings: dict[str, Any], in_file: bool) -> None:
        """A new session with some history, which a file of its own may hold."""
        self.folder = tempfile.TemporaryDirectory()
        self.recorder, self.clock, self.store = SlowHooks(session_id="one"), Clock(), MemoryStore()
        self.settings = {**settings, "persistence": {"path": f"{self.folder.name}/history.jsonl"} if in_file else None}

        async def start() -> None:
            self.provider = Moody()
            self.manager = self.new_manager()
            await self.manager.set_messages(copy.deepcopy(rows))

        self.run(start())
        self.rows: Rows = copy.deepcopy(rows)
        self.budget = 800
        self.prompt: str | None = None
        self.heard = False
        """Whether a provider's figures may correct what is measured."""
        self.served = 0
        self.fired = -PAUSE
        """How many requests had been served at the last compaction whose view did not fit."""
        self.told = 0
        self.replaced()

    def new_manager(self) -> SummarizingContextManager:
        """One over the store of this life."""
        return SummarizingContextManager(
            self.recorder, store=self.store, clock=self.clock, sleep=self.clock.sleep, **self.settings
        )

    def tight(self, end: int | None = None) -> list[Any]:
        """The compactions since the last view whose view did not fit."""
        told = [data for name, data in self.recorder.events[self.told : end] if name == "context:compaction"]
        return [data for data in told if data["after_tokens"] > data["budget"]]

    @property
    def made(self) -> SummarizingContextManager:
        assert self.manager is not None
        return self.manager

    def replaced(self) -> None:
        """The history is another one: earlier views and compactions bind no more."""
        self.before: Rows | None = None
        # A compaction that nobody has looked at counts for the throttle all the same.
        self.fired = self.served if self.tight() else self.fired
        self.told = len(self.recorder.events)
        """Events before the last view."""
        self.weighed: tuple[Any, ...] | None = None

    def give(self, rows: Rows) -> None:
        """Another history; the file of a session keeps what a host's copy of it lacks."""
        self.run(self.made.set_messages(copy.deepcopy(rows)))
        if self.settings["persistence"] is not None:
            given, rows = rows, untimed(self.run(self.made.get_messages()))
            assert saved(rendered(rows)) == saved(rendered(given))
        if rows != self.rows:
            self.rows = rows
            self.replaced()

    async def set_prompt(self, prompt: str | None) -> None:
        async def factory() -> str:
            await asyncio.sleep(0)
            assert prompt is not None
            return prompt

        await self.made.set_system_prompt_factory(None if prompt is None else factory)

    async def do(self, name: str) -> Any:
        """Something that a host calls; the user may be refused."""
        calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "view": lambda: self.made.get_messages_for_request(self.budget, self.provider),
            "pin": lambda: self.made.pin(1),
            "count": self.made.get_token_count,
        }
        call = calls.get(name) or getattr(self.made, name)
        with contextlib.suppress(SteeringError):
            return await call()

    async def together(self, *works: Coroutine[Any, Any, Any]) -> list[Any]:
        """What these return; with a provider that hangs, the host gives up waiting after a while."""
        tasks = [asyncio.ensure_future(work) for work in works]
        while not all(task.done() for task in tasks):
            if self.provider.mood == "hang":
                await steps(150, lambda: all(task.done() for task in tasks))
                self.recorder.is_cancelled = True
            await asyncio.wait(tasks, timeout=0.2)
            self.recorder.is_cancelled = False
        return [task.result() for task in tasks]

    async def request(self) -> Rows:
        [view] = await self.together(self.do("view"))
        return list(view)

    def nothing_is_late(self) -> bool:
        return bool(self.settings["wait_seconds"] and self.provider.mood != "hang" and not self.under_way())

    def under_way(self) -> set[asyncio.Task[Any]]:
        """What goes on although the host waits for nothing."""
        return asyncio.all_tasks(self.loop)

    def check(self, view: Rows, at: int) -> None:
        """One view against its history and what was served before; `at`: events before it."""
        told = Counter(self.recorder.names())
        assert told["context:pre_compact"] == told["context:post_compact"]
        assert told["context:compaction_started"] == told["context:compaction_finished"]
        compactions = [data for name, data in self.recorder.events[self.told :] if name == "context:compaction"]
        check_rules(view, self.rows)
        weight = (len(self.rows), self.budget, self.prompt)
        # Of the last requests a cancelled one may have been served.
        held_back = self.tight(at) or self.served - self.fired < PAUSE + 2
        if weight != self.weighed and not held_back:
            check_fits(view, self.budget, self.run(self.made.get_token_count()) if self.heard else None)
        self.served += weight != self.weighed  # hosts may ask several times for one request
        self.weighed = weight
        if self.prompt is not None:
            assert view[0]["content"] == self.prompt
        if self.before is not None and not compactions:
            assert view[: len(self.before)] == self.before
        self.fired = self.served if self.tight() else self.fired
        self.before, self.told = copy.deepcopy(view), len(self.recorder.events)

    @invariant()
    def history_is_whole(self) -> None:
        """Rule 1."""
        if self.manager is not None:
            assert untimed(self.run(self.manager.get_messages())) == self.rows

    @invariant()
    def events_are_whole(self) -> None:
        """Rule 5 and 10: announcements are closed, compactions told once, keys summarised once."""
        if self.manager is None:
            return
        told = Counter(self.recorder.names())
        pre, post, made = (told[f"context:{name}"] for name in ("pre_compact", "post_compact", "compaction"))
        assert made <= post <= pre
        keys = [data["key"] for data in self.recorder.of("context-summarize:summary")]
        assert len(keys) == len(set(keys))
        assert len(self.provider.answered) == len(set(self.provider.answered)), "asked twice for one text"

    def teardown(self) -> None:
        """The session ends: within a second, and nothing of ours is left."""
        try:
            if self.manager is not None:
                self.loop.run_until_complete(asyncio.wait_for(self.manager.close(), 30))
                self.loop.run_until_complete(steps(3))
                self.folder.cleanup()
                assert not self.under_way(), self.under_way()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(steps(2))
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
