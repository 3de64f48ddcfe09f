"""One random life of a session, drawn from a seed: what hosts do, one by one and at once, with a bad provider."""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from amplifier_core.llm_errors import AuthenticationError, ProviderUnavailableError, RateLimitError

from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.testing import MemoryStore, ScriptedProvider
from tests.properties.rules import Rows, check_opening, check_order, check_shape, check_tiles
from tests.support.gated import shortened
from tests.support.recorder import Recorder
from tests.support.rows import assistant, call, calls, result, user
from tests.support.views import nodes, untimed

MOODS = ["good", "good", "slow", "hang", "down", "rate", "auth", "garbage", "changing"]
LONGEST = 20_000.0
"""Virtual seconds that one call of the manager may take: a provider that hangs for every text ends long before."""
Work = Callable[[], Awaitable[Any]]


class Fickle(ScriptedProvider):
    """Answers well, late, never or nonsense, or fails, as its mood is."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__(then=self._say, name="fickle")
        self._draw, self.mood = draw, "good"

    async def _say(self, request: Any) -> str:
        match self._draw.choice(MOODS) if self.mood == "changing" else self.mood:
            case "slow":
                await asyncio.sleep(self._draw.choice([0.5, 30, 100]))
            case "hang":
                await asyncio.sleep(10**6)
            case "down":
                raise ProviderUnavailableError("down", provider=self.name)
            case "rate":
                raise RateLimitError("slow down", provider=self.name, retry_after=3.0)
            case "auth":
                raise AuthenticationError("no key", provider=self.name)
            case "garbage":
                return self._draw.choice(["", "word " * 5_000, "I cannot help with that."])
        return shortened(request)


class Host(Recorder):
    """A coordinator with a session id, whose hooks take a turn of the loop before and after they have heard."""

    session_id = "life"

    async def emit(self, name: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        await super().emit(name, data)
        await asyncio.sleep(0)


class Life:
    """A session from its first row on, over restarts; each view is checked, and each restart shows the same view.

    Args:
        folder: for the history's file, which some lives have.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        random.seed(seed)  # the jitter of retries
        self.draw = draw = random.Random(seed)
        self.provider, self.store = Fickle(draw), MemoryStore()
        self.settings: dict[str, Any] = {
            "segment_tokens": draw.choice([64, 128]),
            "keep_recent": draw.choice([0, 2, 6]),
            "wait_seconds": draw.choice([0, 1, 60]),
            "prefetch": draw.random() < 0.5,
            "auto_compact": draw.random() < 0.9,
        }
        if draw.random() < 0.3:
            self.settings["persistence"] = {"path": str(folder / f"{seed}.jsonl")}
        self.budget = draw.choice([700, 1_500, 3_000])
        self.ids = itertools.count(1)
        self.open: list[str] = []
        """Ids of calls that have no result yet."""
        self.rows: Rows = []
        """Those of the history, as far as no two calls that change it ran at once."""
        self.log: list[str] = []
        self.restart()

    def restart(self) -> None:
        """Begin a new process over the same store."""
        loop = asyncio.get_running_loop()
        self.host = Host({"fickle": self.provider})
        self.manager = SummarizingContextManager(
            self.host, store=self.store, clock=loop.time, now=loop.time, **self.settings
        )
        self.before: Rows | None = None
        self.heard = 0

    async def live(self, steps: int) -> None:
        """So many steps; the last one is a restart. A user begins, as in every session."""
        await self.manager.add_message(user("Please look after the orders."))
        self.rows = untimed(await self.manager.get_messages())
        for _ in range(steps):
            await self.step()
        await self.resume()
        await self.manager.close()

    async def step(self) -> None:
        """One thing that hosts do, or several at once."""
        self.is_replaced = False
        quick = [(self.add, 8), (self.request, 6), (self.preview, 1), (self.compact, 1), (self.undo, 1), (self.pin, 1)]
        others = [(self.should_compact, 1), (self.stop, 1), (self.count, 1), (self.set_messages, 1)]
        works, weights = zip(*quick, *others, strict=True)
        turn = self.draw.random()
        if turn < 0.12:
            self.provider.mood = self.draw.choice(MOODS)
            self.log.append(f"mood {self.provider.mood}")
        elif turn < 0.2:
            await asyncio.sleep(self.draw.choice([0.2, 5, 100, 4_000]))
        elif turn < 0.24:
            await self.resume()
        else:
            many = self.draw.choice([1, 1, 1, 2, 3])
            await self.at_once([work() for work in self.draw.choices(works, weights, k=many)])

    async def at_once(self, works: list[Work]) -> None:
        """Do these at once; now and then the host gives one of them up."""
        tasks = [asyncio.ensure_future(work()) for work in works]
        if self.draw.random() < 0.15:
            for _ in range(self.draw.randrange(40)):
                await asyncio.sleep(0)
            if not tasks[0].done():
                self.log.append("cancel the first")
            tasks[0].cancel()
        _, left = await asyncio.wait(tasks, timeout=LONGEST)
        assert not left, f"hangs: {left}"
        for task in tasks:
            if not task.cancelled():
                task.result()
        self.rows = untimed(await self.manager.get_messages())
        self.check([task.result() for task in tasks if not task.cancelled() and isinstance(task.result(), list)])
        self.check_events()

    # --- what hosts do ----------------------------------------------------------------------------------------------

    def add(self) -> Work:
        rows = self.some_rows()

        async def work() -> None:
            for row in rows:
                await self.manager.add_message(copy.deepcopy(row))

        return self.told(f"add {len(rows)}", work)

    def request(self) -> Work:
        if self.draw.random() < 0.1:
            self.budget = self.draw.choice([700, 1_500, 3_000])
        budget = self.budget
        return self.told(f"request {budget}", lambda: self.manager.get_messages_for_request(budget, self.provider))

    def preview(self) -> Work:
        return self.told("preview", self.manager.preview)

    def should_compact(self) -> Work:
        return self.told("should_compact", self.manager.should_compact)

    def count(self) -> Work:
        return self.told("count", self.manager.get_token_count)

    def stop(self) -> Work:
        return self.told("stop", self.manager.stop_waiting)

    def compact(self) -> Work:
        focus = self.draw.choice([None, "the orders"])
        return self.told(f"compact {focus}", lambda: self.manager.compact(focus))

    def undo(self) -> Work:
        return self.told("undo", lambda: refusable(self.manager.undo))

    def pin(self) -> Work:
        number = self.draw.randrange(1, len(self.rows) + 2)
        if self.draw.random() < 0.3:
            return self.told("unpin", lambda: refusable(self.manager.unpin))
        return self.told(f"pin {number}", lambda: refusable(lambda: self.manager.pin(number)))

    def set_messages(self) -> Work:
        """The same rows, more of them, fewer, or one that is changed."""
        rows, how = copy.deepcopy(self.rows), self.draw.choice(["same", "more", "fewer", "changed"])
        if how == "more":
            rows += self.some_rows()
        elif how == "fewer":
            rows = rows[: self.draw.randrange(len(rows)) + 1]
        elif how == "changed" and rows:
            rows[self.draw.randrange(len(rows))] = user(f"changed by the host {next(self.ids)}")
        self.is_replaced = True

        async def work() -> None:
            await self.manager.set_messages(rows)

        return self.told(f"set_messages {how} {len(rows)}", work)

    def told(self, what: str, work: Work) -> Work:
        """The work, noted."""
        self.log.append(what)
        return work

    def some_rows(self) -> Rows:
        """A turn, as long as chance has it: equal ones come as well, and calls stay open."""
        at, size = next(self.ids), self.draw.choice([1, 3, 10, 60, 200])
        words = " ".join(f"value-{self.draw.randrange(2_000)}" for _ in range(size))
        match self.draw.randrange(9):
            case 0:
                return [
                    user("Please poll."),
                    call(f"c{at}", "poll"),
                    result(f"c{at}", "pending " * 40),
                    assistant("Wait."),
                ]
            case 1 | 2:
                return [user(f"Please look up {at}: {words}")]
            case 3:
                return [assistant(f"Order {at} was found. {words}")]
            case 4:
                return [call(f"c{at}", order=at)]
            case 5:
                return [calls((f"c{at}", "read", {}), (f"d{at}", "read", {})), result(f"c{at}", words)]
            case 6:
                return [result(f"{self.draw.choice('cd')}{self.draw.randrange(1, at + 1)}", words)]
        return [call(f"c{at}", "read", path=f"src/{at}.py"), result(f"c{at}", words)]

    # --- what always holds ------------------------------------------------------------------------------------------

    def check(self, views: list[Rows]) -> None:
        """Every view keeps the rules; without a compaction, the one before is its beginning."""
        moved = self.is_replaced or "context:compaction" in self.host.names()[self.heard :]
        self.heard = len(self.host.events)
        for view in views:
            check_shape(view)
            check_tiles(view)
            if not self.is_replaced:
                check_order(view, self.rows)
                check_opening(view, self.rows, len(nodes(view)))
            if self.before is not None and not moved:
                assert view[: len(self.before)] == self.before, f"another beginning: {difference(self.before, view)}"
        self.before = views[0] if len(views) == 1 and not moved else None

    def check_events(self) -> None:
        """Announcements are closed, in order, and a compaction is told right after its end."""
        told = [name for name in self.host.names() if name in ("context:pre_compact", "context:post_compact")]
        for at, name in enumerate(told):
            assert name == ("context:post_compact" if at % 2 else "context:pre_compact"), told

    async def resume(self) -> None:
        """The session ends and goes on, with the rows that its host has saved, or from its file: an equal view."""
        await self.manager.get_token_count()
        view = self.manager.conversation.rendering().rows(None)
        fallbacks = {item.node.place for item in self.manager.conversation.view.shown if item.summary.fallback}
        calls = self.provider.calls
        rows = await self.manager.get_messages()
        if self.draw.random() < 0.5:
            await self.manager.finish()
        await self.manager.close()
        self.log.append(f"resume of {len(rows)} rows, {len(nodes(view))} summaries")
        calls, old = self.provider.calls, self.manager.conversation
        self.restart()
        if "persistence" not in self.settings:
            await self.manager.set_messages(rows)
        assert await self.manager.get_messages() == rows
        await self.manager.get_token_count()
        new = self.manager.conversation
        shown = new.rendering().rows(None)
        assert self.provider.calls == calls, "a resume asks nobody"
        if fallbacks:  # their texts may have come
            assert [n.place for n in new.view.nodes] == [n.place for n in old.view.nodes]
        else:
            assert shown == view, f"another view after a resume:\n{difference(view, shown)}"


def difference(old: Rows, new: Rows) -> str:
    """The first rows that differ."""
    for at, (left, right) in enumerate(itertools.zip_longest(old, new)):
        if left != right:
            return f"{len(old)} and {len(new)} rows, at {at}:\n{str(left)[:600]}\n{str(right)[:600]}"
    return "none"


async def refusable(work: Work) -> None:
    """Steering may be refused."""
    try:
        await work()
    except SteeringError:
        pass
