"""The texts by key: known summaries, and for each missing one the single task that makes it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from context_summarize.background import end_tasks, in_thread, until_done
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import AskLater
from context_summarize.redaction import traceback_of, withholds
from context_summarize.summaries.answer import REASONS
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.jobs import Target, make_fallback, make_job
from context_summarize.summaries.services import Services

logger = logging.getLogger(__name__)

MAX_REFUSALS = 3
"""A summary is given up after this many requests. Each asked twice, and got no usable answer."""


class SummaryRegistry:
    """Makes summaries in tasks, which requests share and wait for, and keeps their texts.

    `text_of` starts nothing. Requests that need the same key share one call. A task outlives the request that started
    it, and puts its result into the store.

    Args:
        is_cancelled: returns True once the host has cancelled; then no request waits.
    """

    def __init__(self, services: Services, summarizer: Summarizer, is_cancelled: Callable[[], bool]) -> None:
        self._services = services
        self._summarizer = summarizer
        self._is_cancelled = is_cancelled
        self._texts: dict[str, Summary] = {}
        self._fallbacks: dict[str, Summary] = {}
        """Texts by code, by key: functions of the rows alone, kept because they take a while to make."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ahead: set[str] = set()
        """Keys that were started ahead since the last compaction; one that fails is not started ahead again."""
        self._late: set[str] = set()
        """Keys under way that were waited for in vain. While there is one, no request waits."""
        self._waits = 0
        """Requests that wait for summaries."""
        self._refusals = Counter[str]()
        self._turns = asyncio.Semaphore(services.config.max_concurrency)
        self._reading = asyncio.Lock()
        self._closed = False
        self.stored: set[str] = set()
        """Keys of the texts that come from the store, without a call of this session."""

    def text_of(self, node: Node, fallbacks: Iterable[str] = ()) -> Summary | None:
        """Returns the text of a node: by code if its key is among `fallbacks`; None if it is not known."""
        return (self._fallbacks if node.key in fallbacks else self._texts).get(node.key)

    def start(self, node: Node, log: Log, target: Target | None, *, ahead: bool = False) -> None:
        """Starts the task that makes a summary, unless the summary is known or under way.

        Args:
            ahead: True for a summary that no request waits for; it is started once between two compactions.
        """
        if self._closed or node.key in self._tasks or node.key in self._texts or (ahead and node.key in self._ahead):
            return
        self._ahead.add(node.key)
        work = self._work(node, log, target)
        task = self._tasks[node.key] = asyncio.create_task(work, name=f"context-summarize:{node.key[:12]}")
        # This callback runs before the requests that wait for the task continue.
        task.add_done_callback(lambda _: self._ended(node.key))

    def _ended(self, key: str) -> None:
        del self._tasks[key]
        self._late.discard(key)

    def is_under_way(self, node: Node) -> bool:
        """Returns True while a task makes this summary."""
        return node.key in self._tasks

    @property
    def is_closed(self) -> bool:
        """True once the session has ended: what is missing then has not failed."""
        return self._closed

    @property
    def is_busy(self) -> bool:
        """True while any summary is being made."""
        return bool(self._tasks)

    async def _work(self, node: Node, log: Log, target: Target | None) -> None:
        try:
            await self.look_up([node])
            if node.key not in self._texts and target is not None:
                await self._make(node, log, target)
        except AskLater:
            logger.info("a hook asks the user about calls for summaries: they are put off until a request waits")
        except SummaryUnavailable as error:
            self._refusals[node.key] += error.kind in REASONS  # the summariser has reported it
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            text = "a summary could not be made, so a request that needs it gets a fallback: %s"
            logger.error(text, traceback_of(error, self._services.config.redact))
        finally:
            self._services.outbox.start()  # the next request, which would also do it, may come much later

    async def look_up(self, nodes: Sequence[Node]) -> None:
        """Takes the texts of these nodes from the store, if it has them. Starts no call for the others."""
        keys = [node.key for node in nodes if node.key not in self._texts]
        found = await self._services.store.get(keys) if keys else {}
        self._texts |= found
        self.stored |= found.keys()

    async def _make(self, node: Node, log: Log, target: Target) -> None:
        """Gets a summary from the provider, and stores it. No merge is made from a fallback.

        Raises:
            SummaryUnavailable: the provider brings none.
        """
        if self._summarizer.is_paused(target) or self._refusals[node.key] >= MAX_REFUSALS:
            return
        for child in node.children:
            self.start(child, log, target)
        await self.settled(node.children)
        await self.look_up(node.children)  # a compaction may have dropped some
        children = [self._texts[child.key] for child in node.children if child.key in self._texts]
        if len(children) < len(node.children):
            return
        async with self._turns:  # rows are read only when the provider is free
            if self._closed:
                return
            async with self._reading:  # one after the other, so that the calls keep the order of their start
                job = await in_thread(_characters(node, log), make_job, node, log, children, self._services.count)
            if withholds(self._services.redact):  # what is withheld is summarised by code, and not stored
                return
            summary = await self._summarizer.make(job, target, lambda: self._waits > 0)
        if withholds(self._services.redact):
            return
        self._texts[node.key] = summary
        await self._services.store.put(summary)

    async def settled(self, nodes: Iterable[Node]) -> None:
        """Waits until no task runs for any of these nodes. This does not count as the wait of a request."""
        keys = [node.key for node in nodes]
        while tasks := [self._tasks[key] for key in keys if key in self._tasks]:
            await asyncio.wait(tasks)

    async def idle(self, seconds: float) -> None:
        """Waits at most so long until no summary is being made; not at all while one is late."""
        end = asyncio.get_running_loop().time() + seconds
        while self._tasks and not self._late:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                self._late |= self._tasks.keys()
                return
            await until_done({*self._tasks.values()}, left)
            await asyncio.sleep(0)  # what has ended is noted first

    async def wait(self, nodes: Sequence[Node], seconds: float | None, is_over: Callable[[], bool]) -> None:
        """Waits for these summaries, which have been started.

        Args:
            seconds: the longest wait; None = as long as it takes. With a limit, nothing is waited for while a call that
                was late still runs.
            is_over: returns True to end the wait early, as the host's cancellation does.
        """
        if seconds is not None and self._late:
            return
        tasks = {self._tasks[node.key] for node in nodes if node.key in self._tasks}

        def is_stopped() -> bool:
            return self._is_cancelled() or is_over()

        self._waits += 1
        try:
            await until_done(tasks, seconds, is_stopped)
        finally:
            self._waits -= 1
        if is_stopped():
            return
        self._late |= {node.key for node in nodes} & self._tasks.keys()
        if seconds and tasks and not any(task.done() for task in tasks):  # one that hangs fails only much later
            logger.warning(
                "no summary came within wait_seconds (%g), so requests go on without, or with fallbacks, until no "
                "late call runs; check the provider that writes the summaries, or name another in summary_provider",
                self._services.config.wait_seconds,
            )

    async def fall_back(self, nodes: Iterable[Node], log: Log) -> None:
        """Makes the fallbacks of these nodes: from their rows, or from their children's fallbacks."""
        for node in nodes:
            if node.key in self._fallbacks:
                continue
            await self.fall_back(node.children, log)
            below = [self._fallbacks[child.key] for child in node.children]
            size = _characters(node, log)
            self._fallbacks[node.key] = await in_thread(size, make_fallback, node, log, below, self._services.count)

    def keep(self, nodes: Iterable[Node]) -> None:
        """Begins the time of a new compaction: drops the texts that it does not show."""
        keys = {node.key for node in nodes} | self._tasks.keys()
        self._texts = {key: text for key, text in self._texts.items() if key in keys}
        self._ahead.clear()

    def forget_failures(self) -> None:
        """Allows calls again for keys that were refused too often, and for providers that are paused."""
        self._refusals.clear()
        self._summarizer.forget_failures()

    async def close(self, seconds: float = 0) -> None:
        """Starts no more tasks, waits at most so long for those under way, and cancels the rest."""
        self._closed = True
        await until_done(set(self._tasks.values()), seconds, self._is_cancelled)
        await end_tasks(list(self._tasks.values()))


def _characters(node: Node, log: Log) -> int:
    """Returns about how many characters of rows a node's text is made from, or more."""
    return 0 if node.children else log.characters_from(log.row_of(node.first_group))
