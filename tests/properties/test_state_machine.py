"""Rules 1 to 13, as far as they show from outside, over random lives of a whole manager.

tests/support/effort.py has the number of lives, 50 steps each.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError, RateLimitError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.testing import MemoryStore, ScriptedProvider
from tests.properties.rules import Rows, check_fits, check_rules, marks_of, rendered
from tests.properties.strategies import histories, single, tool_run
from tests.support.effort import RUNS
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
WINDOW, MOST, PAUSE = 10, 2, 5
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


class ManagerMachine(RuleBasedStateMachine):
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
        self.fired: list[int] = []
        """How many requests had been served at each compaction."""
        self.told = 0
        self.floors: list[int] = []
        """Compactions in the last requests that left the view over its budget."""
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
        self.fired += [self.served] * len(self.tight())
        self.told = len(self.recorder.events)
        """Events before the last view."""
        self.weighed: tuple[Any, ...] | None = None

    @rule(rows=st.one_of(single(), single(), tool_run()))
    def add(self, rows: Rows) -> None:
        """A row, or a tool run; what the host keeps of it is the host's."""

        async def feed() -> None:
            for row in rows:
                given = copy.deepcopy(row)
                await self.made.add_message(given)
                given.clear()

        self.run(feed())
        self.rows += rows

    @rule(rows=histories(8), as_list=st.booleans())
    def extend(self, rows: Rows, as_list: bool) -> None:
        """The same history and more: the view goes on."""
        self.rows += copy.deepcopy(rows)
        whole = copy.deepcopy(self.rows)
        self.run(self.made.set_messages(whole if as_list else iter(whole)))

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), how=st.sampled_from(["truncate", "drop", "insert", "change"]))
    def repair(self, data: st.DataObject, how: str) -> None:
        """A host mends the transcript somewhere."""
        at = data.draw(st.integers(0, len(self.rows) - 1))
        before, after = self.rows[:at], self.rows[at + 1 :]
        row = {"role": "user", "content": f"{how} by the host"}
        rows: dict[str, Rows] = {
            "truncate": before,
            "drop": [*before, *after],
            "insert": [*before, row, *self.rows[at:]],
            "change": [*before, row, *after],
        }
        if rows[how] != self.rows:
            self.give(rows[how])

    @rule()
    def reload(self) -> None:
        """The host saves the history and loads it again, its own filtering in between."""
        self.give(saved(self.rows))

    def give(self, rows: Rows) -> None:
        """Another history; the file of a session keeps what a host's copy of it lacks."""
        self.run(self.made.set_messages(copy.deepcopy(rows)))
        if self.settings["persistence"] is not None:
            given, rows = rows, untimed(self.run(self.made.get_messages()))
            assert saved(rendered(rows)) == saved(rendered(given))
        if rows != self.rows:
            self.rows = rows
            self.replaced()

    @rule()
    def clear(self) -> None:
        """The user begins anew."""
        self.run(self.made.clear())
        self.rows = []
        self.replaced()

    @rule(mood=st.sampled_from([*FAULTS, *["hang"] * len(FAULTS)]))
    def fail(self, mood: str) -> None:
        """The provider is in trouble, and what hung fails too; or it takes questions and gives no answer."""
        self.provider.mood = mood
        if mood == "hang":
            self.provider.go.clear()
        else:
            self.provider.go.set()

    @rule(after=st.sampled_from([0, 30, 3_000]))
    def recover(self, after: int) -> None:
        """All is well again, at once or after a while."""
        self.provider.mood = "good"
        self.provider.go.set()
        self.clock.time += after
        self.run(steps(60))

    @rule(budget=st.sampled_from(BUDGETS))
    def resize(self, budget: int) -> None:
        """Another model, another window."""
        self.budget = budget

    @rule(prompt=st.sampled_from([None, "You are a helpful agent.", "Be brief. " * 20]))
    def instruct(self, prompt: str | None) -> None:
        """The system prompt is another one, or the stored rows hold again."""
        self.run(self.set_prompt(prompt))
        if prompt != self.prompt:
            self.before = None
        self.prompt = prompt

    async def set_prompt(self, prompt: str | None) -> None:
        async def factory() -> str:
            await asyncio.sleep(0)
            assert prompt is not None
            return prompt

        await self.made.set_system_prompt_factory(None if prompt is None else factory)

    @rule(
        tokens=st.sampled_from([-5, 0, 90, 700, 5_000, 10**12]),
        status=st.sampled_from(["ok", "error"]),
        kind=st.sampled_from(["input_tokens", "nonsense"]),
    )
    def hear(self, tokens: int, status: str, kind: str) -> None:
        """A response of the host's own request, whatever its figures."""
        self.heard = True
        data = {"provider": "moody", "status": status, "usage": {kind: tokens, "output_tokens": 5}}
        self.run(self.made.observe_response("llm:response", data))

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

    @rule(many=st.sampled_from([1, 1, 2, 5]))
    def view(self, many: int) -> None:
        """Rules 2 to 7: a view, or several at once, and the same again."""
        at, still = len(self.recorder.events), self.nothing_is_late()
        views = self.run(self.together(*(self.do("view") for _ in range(many))))
        assert not still or all(view == views[0] for view in views)
        if many > 1:
            # What the first of them was weighed by is not seen here.
            self.weighed = (len(self.rows), self.budget, self.prompt)
        self.check(views[-1], at)
        still = self.nothing_is_late()
        calls, at = self.provider.calls, len(self.recorder.events)
        again = self.run(self.request())
        self.check(again, at)
        assert not still or self.provider.calls == calls
        if still or "context:compaction" not in self.recorder.names()[at:]:
            assert again == views[-1]
        for row in again:
            row["content"] = "spoilt"

    @rule(rows=histories(4), works=st.lists(st.sampled_from(AT_ONCE), min_size=1, max_size=3))
    def at_once(self, rows: Rows, works: list[str]) -> None:
        """Rows come while the host does other things: all of them end, and each view keeps the rules."""

        async def add() -> None:
            for row in rows:
                await self.made.add_message(copy.deepcopy(row))

        found = self.run(self.together(add(), *map(self.do, works)))
        self.rows += rows
        for view in found:
            if isinstance(view, list):
                check_rules(view, self.rows)
        self.replaced()

    @precondition(lambda self: self.provider.mood == "good")
    @rule(finishes=st.booleans())
    def resume(self, finishes: bool) -> None:
        """The session goes on in a new process, from its file or the host's rows: an equal view, unasked."""
        in_file = self.settings["persistence"] is not None
        rows = [row for row in self.rows if not (in_file and row.get("ephemeral"))]

        async def go_on() -> tuple[Rows, Rows, bool]:
            before = await self.request()
            before = await self.request()
            is_whole = not (await self.made.statistics()).fallbacks
            if finishes:
                await self.made.finish()
            await self.made.close()
            calls, told = self.provider.calls, self.recorder.compactions
            self.manager = self.new_manager()
            if self.prompt is not None:
                await self.set_prompt(self.prompt)
            if not in_file:
                await self.manager.set_messages(copy.deepcopy(rows))
            assert untimed(await self.manager.get_messages()) == rows
            await self.manager.get_token_count()
            assert self.provider.calls == calls, "a resume asks nobody"
            after = await self.request()
            return before, after, is_whole and self.recorder.compactions == told

        before, after, is_equal = self.run(go_on())
        if is_equal and rows == self.rows:
            assert lasting(after) == lasting(before)
        if not finishes:
            self.provider.answered.clear()  # an answer that has just come may be lost
        self.rows = rows
        self.heard, self.fired, self.floors = False, [], []
        self.replaced()

    @rule(focus=st.sampled_from([None, "the orders"]))
    def compact(self, focus: str | None) -> None:
        """A compaction because the user wants one."""
        [saved] = self.run(self.together(self.made.compact(focus)))
        assert saved >= 0

    @rule()
    def undo(self) -> None:
        """The user takes the last compaction back: without a call, or it is refused and nothing has changed."""
        calls, is_under_way = self.provider.calls, bool(self.under_way())
        try:
            self.run(self.made.undo())
        except SteeringError:
            pass
        else:
            assert self.recorder.of("context:compaction")[-1]["undo"] is True
            self.before = self.weighed = None
        assert is_under_way or self.provider.calls == calls

    @rule(numbers=st.lists(st.integers(1, 30), max_size=3))
    def pin(self, numbers: list[int]) -> None:
        """Messages are pinned, or refused, or all pins go; the view stays as it is until the next compaction."""
        if not numbers:
            assert self.run(self.made.unpin()) == ()
        with contextlib.suppress(SteeringError):
            assert set(numbers) <= set(self.run(self.made.pin(numbers)))

    @rule(after=st.integers(0, 60), what=st.sampled_from(["view", "view", "compact", "count"]))
    def cancel(self, after: int, what: str) -> None:
        """The host gives up somewhere: nothing has changed, or a compaction is told before the next view."""

        async def work() -> None:
            task = asyncio.ensure_future(self.do(what))
            await steps(after, task.done)
            task.cancel()
            await asyncio.wait([task])

        self.run(work())

    def under_way(self) -> set[asyncio.Task[Any]]:
        """What goes on although the host waits for nothing."""
        return asyncio.all_tasks(self.loop)

    def check(self, view: Rows, at: int) -> None:
        """One view against its history and what was served before; `at`: events before it."""
        compactions = [data for name, data in self.recorder.events[self.told :] if name == "context:compaction"]
        check_rules(view, self.rows)
        weight = (len(self.rows), self.budget, self.prompt)
        # Of the last requests a cancelled one may have been served.
        held_back = self.tight(at) or any(self.served - fired < PAUSE + 2 for fired in self.fired)
        if weight != self.weighed and not held_back:
            check_fits(view, self.budget, self.run(self.made.get_token_count()) if self.heard else None)
        self.served += weight != self.weighed  # hosts may ask several times for one request
        self.weighed = weight
        if self.prompt is not None:
            assert view[0]["content"] == self.prompt
        if self.before is not None and not compactions:
            assert view[: len(self.before)] == self.before
        in_request = [data for name, data in self.recorder.events[at:] if name == "context:compaction"]
        floors = sum(data["after_tokens"] > data["budget"] for data in in_request)
        self.floors = [*self.floors, floors][-WINDOW:]
        assert sum(self.floors) <= MOST, "a floor that cannot shrink fires again and again"
        self.fired += [self.served] * len(self.tight())
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


TestManagerMachine = ManagerMachine.TestCase
TestManagerMachine.settings = settings(
    max_examples=RUNS,
    stateful_step_count=50,
    suppress_health_check=list(HealthCheck),
)
