"""`SummaryRegistry`: holds the known summaries, and for each missing one the single task that makes it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from context_summarize.background import end_tasks, in_thread, until_done
from context_summarize.core.frames import show_node
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, ShownNode, Summary
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import AskLater
from context_summarize.redaction import traceback_of, withholds
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.jobs import Target, make_fallback, make_job
from context_summarize.summaries.services import Services

logger = logging.getLogger(__name__)

MAX_REFUSALS = 3
"""A summary is given up after this many requests. Each asked twice, and got no usable answer."""
_CHARACTERS = 40
"""Characters that may be read for each token of a segment: a row may be ten times as long as its segment."""


class SummaryRegistry:
    """Makes summaries in tasks, which requests share and wait for, and keeps their texts.

    `text_of` and `row_of` start nothing. Requests that need the same key share one call. A task outlives the request
    that started it, and puts its result into the store.

    Args:
        is_cancelled: returns True once the host has cancelled; then no request waits.
    """

    def __init__(self, services: Services, summarizer: Summarizer, is_cancelled: Callable[[], bool]) -> None:
        self._services = services
        self._summarizer = summarizer
        self._is_cancelled = is_cancelled
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._late: set[str] = set()
        """Keys under way whose wait has timed out."""
        self._waits = 0
        """Requests that wait for summaries."""
        self._is_silent = False
        """True after a wait that brought no summary, until a summary comes."""
        self._texts: dict[str, Summary] = {}
        self.stored: set[str] = set()
        """Keys of the texts that come from the store, without a call of this session."""
        self._fallbacks: dict[str, Summary] = {}
        """All fallbacks of this log: each is written once."""
        self._replaced: set[str] = set()
        """Keys whose missing texts the fallbacks replace until the next compaction."""
        self._refusals = Counter[str]()
        self._turns = asyncio.Semaphore(services.config.max_concurrency)
        self._reading = asyncio.Lock()
        self._closed = False
        self.stop = asyncio.Event()
        """Ends the waits of the requests that hold it. Later requests hold a new one. The tasks go on."""
        self.version = 0
        """How many tasks have ended. While it is the same, no new text has come."""

    def text_of(self, node: Node) -> Summary | None:
        """Returns the summary of a node, or the fallback in its place; None without either."""
        fallback = self._fallbacks[node.key] if node.key in self._replaced else None
        return self._texts.get(node.key) or fallback

    def row_of(self, node: Node, log: Log) -> ShownNode | None:
        """Returns the row of a node's summary, or of the fallback in its place; None without either."""
        summary, row = self.text_of(node), log.node_rows.get(node.place)
        if summary is not None and (row is None or row.summary is not summary):
            row = log.node_rows[node.place] = show_node(log, node, summary, self._services.prompts.frame.fill)
        return None if summary is None else row

    def start(self, node: Node, log: Log, target: Target | None) -> None:
        """Starts the task that makes a summary and its row, unless the summary is known or under way."""
        if self._closed or node.key in self._tasks or node.key in self._texts:
            return
        work = self._work(node, log, target)
        task = self._tasks[node.key] = asyncio.create_task(work, name=f"context-summarize:{node.key[:12]}")
        # This callback runs before the requests that wait for the task continue.
        task.add_done_callback(lambda _: self._ended(node.key))

    def _ended(self, key: str) -> None:
        del self._tasks[key]
        self._late.discard(key)  # a later task for this key is waited for again
        self.version += 1

    async def _work(self, node: Node, log: Log, target: Target | None) -> None:
        try:
            await self.look_up([node])
            if node.key not in self._texts and target is not None:
                await self._make(node, log, target)
            self.row_of(node, log)  # takes a few milliseconds, which a plan then saves
        except AskLater:
            logger.info("a hook asks the user about calls for summaries: they are put off until a request waits")
        except SummaryUnavailable as error:
            self._refusals[node.key] += error.refused  # the summariser has reported it
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            text = "a summary could not be made, so a request that needs it gets a fallback: %s"
            logger.error(text, traceback_of(error, self._services.config.redact))

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
        await self.settled(child.key for child in node.children)
        await self.look_up(node.children)  # a compaction may have dropped some
        children = [self._texts[child.key] for child in node.children if child.key in self._texts]
        if len(children) < len(node.children):
            return
        async with self._turns:  # rows are read only when the provider is free
            if self._closed:
                return
            async with self._reading:  # one after the other, so that the calls keep the order of their start
                size = _CHARACTERS * node.segment_tokens
                job = await in_thread(size, make_job, node, log, children, self._services.count)
            if withholds(self._services.redact):  # what is withheld is summarised by code, and not stored
                return
            summary = await self._summarizer.make(job, target, lambda: self._waits > 0)
        if withholds(self._services.redact):
            return
        self._texts[node.key] = summary
        self._is_silent = False
        await self._services.store.put(summary)

    async def get(
        self,
        nodes: Sequence[Node],
        log: Log,
        target: Target | None,
        seconds: float | None,
        stop: asyncio.Event,
    ) -> None:
        """Starts these summaries and waits for them; fallbacks replace those that fail. Late tasks go on.

        Args:
            seconds: the longest wait; None = as long as it takes. With a limit, a call that was late is not waited
                for again while it runs. If the last wait brought no summary, nothing is waited for until a call ends.
            stop: ends the wait, as the host's cancellation does.
        """
        for node in nodes:
            self.start(node, log, target)
        if seconds is not None and self._is_silent and self._late:
            seconds = 0
        wanted = {node.key for node in nodes if seconds is None or node.key not in self._late}
        tasks = {self._tasks[key] for key in wanted if key in self._tasks}

        def is_stopped() -> bool:
            return stop.is_set() or self._is_cancelled()

        if not is_stopped():
            before = self.version
            self._waits += 1
            try:
                await until_done(tasks, seconds, is_stopped)
            finally:
                self._waits -= 1
            self._late |= wanted & self._tasks.keys()
            # Only the first wait of a request has the full time. A second one follows a wait that brought texts.
            is_first = seconds == self._services.config.wait_seconds
            brought_nothing = bool(tasks) and self.version == before and not is_stopped()
            if brought_nothing and is_first and not self._is_silent:
                self._warn()
        if not self._closed:  # at the session's end the tasks are cancelled: they have not failed
            await self.fill_in([node for node in nodes if node.key not in self._tasks], log)

    def _warn(self) -> None:
        """Warns of a wait that has brought no summary: a provider that hangs fails only much later."""
        self._is_silent = True
        logger.warning(
            "no summary came within wait_seconds (%g), so requests go on without, or with fallbacks, until a call "
            "has ended; check the provider that writes the summaries, or name another in summary_provider",
            self._services.config.wait_seconds,
        )

    async def settled(self, keys: Iterable[str]) -> None:
        """Waits until no task runs for any of these keys. This does not count as the wait of a request."""
        keys = list(keys)
        while tasks := [self._tasks[key] for key in keys if key in self._tasks]:
            await asyncio.wait(tasks)

    def end_waits(self) -> None:
        """Ends the waits of the current requests, but not those of later ones."""
        self.stop.set()
        self.stop = asyncio.Event()

    async def fill_in(self, nodes: Sequence[Node], log: Log) -> list[ShownNode]:
        """Returns the rows of these nodes: from known or stored texts, else from new fallbacks."""
        await self.look_up(nodes)
        rows = list[ShownNode]()
        for node in nodes:
            if self.text_of(node) is None:
                await self._fallback(node, log)
                self._replaced.add(node.key)
            if (shown := self.row_of(node, log)) is not None:  # right away: another request may drop the text
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
        """Shows no fallbacks any more, because a compaction begins: their summaries are requested again."""
        self._replaced.clear()

    def compacted(self, shown: Sequence[ShownNode], log: Log) -> None:
        """Keeps the texts that the view of a new compaction shows, and drops the others."""
        keep = {item.node.key for item in shown} | self._tasks.keys()
        self._texts = {key: text for key, text in self._texts.items() if key in keep}
        self._texts |= {item.node.key: item.summary for item in shown if not item.summary.fallback}
        self._replaced &= keep
        whole = (item for item in shown if item.text == item.summary.text)  # plans count with whole summaries
        log.node_rows = {item.node.place: item for item in whole}

    def begin_anew(self) -> None:
        """Drops what belongs to the old log, because another one replaces it. Its calls still fill the store."""
        self._fallbacks.clear()
        self._replaced.clear()
        self._late.clear()

    def forget_refusals(self) -> None:
        """Allows calls again for keys that were refused too often."""
        self._refusals.clear()

    async def close(self, seconds: float = 0) -> None:
        """Starts no more tasks, waits at most so long for those under way, and cancels the rest."""
        self._closed = True
        await until_done(set(self._tasks.values()), seconds, self._is_cancelled)
        await end_tasks(list(self._tasks.values()))
