"""`SummaryRegistry`: what is known of each summary, and the one task that makes it for all who wait."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from context_summarize.background import end_tasks, in_thread, until_done
from context_summarize.core.frames import show_node
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.view import ShownNode
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import AskLater
from context_summarize.redaction import traceback_of
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.jobs import Target, make_fallback, make_job
from context_summarize.summaries.services import Services

logger = logging.getLogger(__name__)

MAX_REFUSALS = 3
"""Times that the answers for a key may be refused by their form, two each; after that it is not asked for again."""
_CHARACTERS = 40
"""For each token of a segment's length, so many may be read: of a row that is ten times as long every character is."""


class SummaryRegistry:
    """Starts, shares, waits for and remembers the making of summaries.

    Asking what is known starts nothing. A node is known once its text is, or a fallback takes its place: then it has a
    row, and so a size. A call is made once per key, whoever asks meanwhile. Work outlives the request that started it:
    its result reaches the store by itself.

    Args:
        is_cancelled: whether the host has cancelled; then nobody waits.
    """

    def __init__(self, services: Services, summarizer: Summarizer, is_cancelled: Callable[[], bool]) -> None:
        self._services = services
        self._summarizer = summarizer
        self._is_cancelled = is_cancelled
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._late: set[str] = set()
        """Keys under way that were waited for in vain."""
        self._waits = 0
        """Requests that wait for summaries."""
        self._is_told = False
        """True from the warning that a wait has ended without any summary until one comes."""
        self._texts: dict[str, Summary] = {}
        self._stored: set[str] = set()
        """Keys of the texts that took no call of this session."""
        self._fallbacks: dict[str, Summary] = {}
        """They take the place of texts until the next compaction."""
        self._refusals = Counter[str]()
        self._turns = asyncio.Semaphore(services.config.max_concurrency)
        self._reading = asyncio.Lock()
        self._closed = False
        self.stop = asyncio.Event()
        """Set once the host gives up the requests that hold it; later ones hold another. The work itself goes on."""
        self.version = 0
        """How many tasks have ended: at the same version nothing new has come."""

    def known(self, node: Node) -> Summary | None:
        """Returns the summary of a node, or the fallback in its place; None without either."""
        return self._texts.get(node.key) or self._fallbacks.get(node.key)

    def shown(self, node: Node, log: Log) -> ShownNode | None:
        """Returns the row of a node: of its summary, or of the fallback in its place; None without either."""
        summary, row = self.known(node), log.node_rows.get(node.place)
        if summary is not None and (row is None or row.summary is not summary):
            row = log.node_rows[node.place] = show_node(log, node, summary, self._services.prompts.frame.fill)
        return None if summary is None else row

    def is_from_store(self, key: str) -> bool:
        """Returns True for a summary that took no call of this session."""
        return key in self._stored

    def start(self, node: Node, log: Log, target: Target | None) -> None:
        """Has a summary made, and its row, unless it is known or under way."""
        if self._closed or node.key in self._tasks or node.key in self._texts:
            return
        work = self._work(node, log, target)
        task = self._tasks[node.key] = asyncio.create_task(work, name=f"context-summarize:{node.key[:12]}")
        task.add_done_callback(lambda _: self._ended(node.key))  # before anybody who waits for it goes on

    def _ended(self, key: str) -> None:
        del self._tasks[key]
        self._late.discard(key)  # what is started after it is other work
        self.version += 1

    async def _work(self, node: Node, log: Log, target: Target | None) -> None:
        try:
            await self.look_up([node])
            if node.key not in self._texts and target is not None:
                await self._make(node, log, target)
            self.shown(node, log)  # a few milliseconds that no plan has to take
        except AskLater:
            logger.info("a hook asks the user about calls for summaries: they are put off until a request waits")
        except SummaryUnavailable as error:
            self._refusals[node.key] += error.refused  # it has been told
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            told = "a summary could not be made; a fallback takes its place: %s"
            logger.error(told, traceback_of(error, self._services.config.redact))

    async def look_up(self, nodes: Sequence[Node]) -> None:
        """Takes up what the store has of these nodes. Nobody is asked for the others."""
        keys = [node.key for node in nodes if node.key not in self._texts]
        found = await self._services.store.get(keys) if keys else {}
        self._texts |= found
        self._stored |= found.keys()

    async def _make(self, node: Node, log: Log, target: Target) -> None:
        """Asks the provider for a summary, and stores it. Nothing is merged from a fallback.

        Raises:
            SummaryUnavailable: there is none.
        """
        if self._summarizer.is_paused(target) or self._refusals[node.key] >= MAX_REFUSALS:
            return
        for child in node.children:
            self.start(child, log, target)
        await self.settled(child.key for child in node.children)
        await self.look_up(node.children)  # a compaction may have let go of some
        children = [self._texts[child.key] for child in node.children if child.key in self._texts]
        if len(children) < len(node.children):
            return
        async with self._turns:  # what waits for a provider is not read before its turn
            if self._closed:
                return
            async with self._reading:  # one after the other, so that they ask in the order in which they were started
                size = _CHARACTERS * node.segment_tokens
                job = await in_thread(size, make_job, node, log, children, self._services.count)
            summary = await self._summarizer.make(job, target, lambda: self._waits > 0)
        self._texts[node.key], self._is_told = summary, False
        await self._services.store.put(summary)

    async def get(
        self,
        nodes: Sequence[Node],
        log: Log,
        target: Target | None,
        seconds: float | None,
        stop: asyncio.Event,
    ) -> None:
        """Has these summaries made and waits for them; fallbacks take the place of those that cannot be had.

        The work on those that are late goes on.

        Args:
            seconds: to wait at most, but not again for what was late once; None = as long as it takes.
            stop: ends the wait, as the host's cancellation does.
        """
        for node in nodes:
            self.start(node, log, target)
        wanted = {node.key for node in nodes if seconds is None or node.key not in self._late}
        tasks = {self._tasks[key] for key in wanted if key in self._tasks}

        def is_stopped() -> bool:
            return stop.is_set() or self._is_cancelled()

        if not is_stopped():
            self._waits += 1
            try:
                await until_done(tasks, seconds, is_stopped)
            finally:
                self._waits -= 1
            self._late |= wanted & self._tasks.keys()
            if not is_stopped():
                self._tell(tasks)
        if not self._closed:  # what the end of the session has cut off has not failed
            await self.place([node for node in nodes if node.key not in self._tasks], log)

    def _tell(self, tasks: set[asyncio.Task[None]]) -> None:
        """Warns, once, of a wait that has brought nothing: a provider that hangs fails only much later."""
        if not tasks or self._is_told or any(task.done() for task in tasks):
            return
        self._is_told = True
        logger.warning(
            "no summary came within wait_seconds (%g), so requests go on without, or with fallbacks, and wait again "
            "for later ones; check the provider that writes the summaries, or name another in summary_provider",
            self._services.config.wait_seconds,
        )

    async def settled(self, keys: Iterable[str]) -> None:
        """Until nothing is under way for any of these keys. Nobody's request: it does not count as waited for."""
        keys = list(keys)
        while tasks := [self._tasks[key] for key in keys if key in self._tasks]:
            await asyncio.wait(tasks)

    def end_waits(self) -> None:
        """Ends the waits of the requests under way, and of no later one."""
        self.stop.set()
        self.stop = asyncio.Event()

    async def place(self, nodes: Sequence[Node], log: Log) -> list[ShownNode]:
        """Returns the rows of these nodes: of known or stored texts, else of fallbacks until the next compaction."""
        await self.look_up(nodes)
        rows = list[ShownNode]()
        for node in nodes:
            if self.known(node) is None:
                await self._fallback(node, log)
            if (shown := self.shown(node, log)) is not None:  # at once: others may let go of the text
                rows.append(shown)
            await asyncio.sleep(0)  # making a row takes a few milliseconds
        return rows

    async def _fallback(self, node: Node, log: Log) -> Summary:
        if node.key not in self._fallbacks:
            await self.look_up(node.children)
            below = [self._texts.get(child.key) or await self._fallback(child, log) for child in node.children]
            size = _CHARACTERS * node.segment_tokens
            made = await in_thread(size, make_fallback, node, log, below, self._services.count)
            self._fallbacks[node.key] = made
        return self._fallbacks[node.key]

    def begin(self) -> None:
        """A compaction begins: fallbacks stand in no more, so that their summaries are asked for again."""
        self._fallbacks.clear()

    def compacted(self, shown: Sequence[ShownNode], log: Log) -> None:
        """A compaction has been made: what no view shows is let go of, and what one shows is known."""
        keep = {item.node.key for item in shown} | self._tasks.keys()
        self._texts = {key: text for key, text in self._texts.items() if key in keep}
        self._texts |= {item.node.key: item.summary for item in shown if not item.summary.fallback}
        self._fallbacks = {key: text for key, text in self._fallbacks.items() if key in keep}
        whole = (item for item in shown if item.text == item.summary.text)  # plans count with whole summaries
        log.node_rows = {item.node.place: item for item in whole}

    def begin_anew(self) -> None:
        """Another log takes the place of the one before. Calls under way still fill the store."""
        self._fallbacks.clear()
        self._late.clear()

    def forget_refusals(self) -> None:
        """Asks again for keys that were refused too often."""
        self._refusals.clear()

    async def close(self, seconds: float = 0) -> None:
        """Starts nothing more, waits at most so long for the calls under way, and cancels the rest."""
        self._closed = True
        await until_done(set(self._tasks.values()), seconds, self._is_cancelled)
        await end_tasks(list(self._tasks.values()))
