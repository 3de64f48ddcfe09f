"""Rules 1 to 13, as far as they show from outside, over random lives of a whole manager.

tests/support/effort.py has the number of lives, 50 steps each.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from context_summarize.errors import SteeringError
from tests.properties.life import AT_ONCE, BUDGETS, FAULTS, PAUSE, Life, lasting, steps
from tests.properties.rules import Rows, check_rules
from tests.properties.strategies import histories, single, tool_run
from tests.support.effort import RUNS
from tests.support.saved import saved
from tests.support.views import untimed


class ManagerMachine(Life):
    """What may happen in it."""

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
        self.heard, self.fired = False, -PAUSE
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


TestManagerMachine = ManagerMachine.TestCase
TestManagerMachine.settings = settings(
    max_examples=RUNS,
    stateful_step_count=50,
    suppress_health_check=list(HealthCheck),
)
