"""`SummaryRegistry`: what is known of each summary, and the one task that makes it for all who wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from context_summarize.background import end_tasks, until_done
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.view_state import ShownNode
from context_summarize.errors import SummaryUnavailable
from context_summarize.redaction import traceback_of
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.entry import MAX_REFUSALS, Entry, Status
from context_summarize.summaries.jobs import Target, fallback, make_job, read
from context_summarize.summaries.services import Services
from context_summarize.summaries.telling import Teller

logger = logging.getLogger(__name__)

Show = Callable[[NodeBuilder, Node, Summary], ShownNode]
"""Makes the row that stands for a node."""


class SummaryRegistry:
    """Starts, shares, waits for and remembers the making of summaries.

    Asking for a status or a size starts nothing. A call is made once per key, whoever asks meanwhile. Work outlives the
    request that started it: its result reaches the store by itself.

    Args:
        is_cancelled: whether the host has cancelled; then nobody waits.
    """

    def __init__(
        self, services: Services, summarizer: Summarizer, show: Show, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._services = services
        self._summarizer = summarizer
        self.row_of: Show = show
        self._is_cancelled = is_cancelled
        self._teller = Teller(services)
        self._entries: dict[str, Entry] = {}
        self._turns = asyncio.Semaphore(services.config.max_concurrency)
        self._reading = asyncio.Lock()
        self._stopped = asyncio.Event()
        self._closed = False
        self.version = 0
        """Grows with every change of a status: a plan made at the same version is still right."""

    def _entry(self, key: str) -> Entry:
        return self._entries.setdefault(key, Entry())

    # --- what is known ----------------------------------------------------------------------------------------------

    def status(self, key: str) -> Status:
        """What is known of a key."""
        return (self._entries.get(key) or Entry()).status()

    def shown(self, node: Node) -> ShownNode | None:
        """The row that stands for a node: its summary's, or that of the fallback in its place; None without either."""
        entry = self._entries.get(node.key) or Entry()
        row = entry.rows.get(node.place)
        return row if row is not None and row.summary is entry.text() else None

    def rows(self, nodes: Iterable[Node]) -> list[ShownNode]:
        """The rows that stand for these nodes, those that are not known aside."""
        return [shown for node in nodes if (shown := self.shown(node)) is not None]

    def texts(self, nodes: Iterable[Node]) -> list[tuple[Node, Summary]]:
        """The summaries of these nodes that are known, fallbacks aside."""
        return [(node, summary) for node in nodes if (summary := self._known(node)) is not None]

    def _known(self, node: Node) -> Summary | None:
        return (self._entries.get(node.key) or Entry()).summary

    def size_of(self, node: Node) -> int | None:
        """Tokens of that row."""
        shown = self.shown(node)
        return None if shown is None else shown.tokens

    def is_known(self, node: Node) -> bool:
        """True if the text of a node is known, or a fallback takes its place."""
        return (self._entries.get(node.key) or Entry()).text() is not None

    def is_from_store(self, key: str) -> bool:
        """True for a summary that took no call of this session."""
        return (self._entries.get(key) or Entry()).from_store

    # --- making -----------------------------------------------------------------------------------------------------

    def start(self, node: Node, builder: NodeBuilder, target: Target | None) -> None:
        """Have a summary made, and its row, unless it is known or under way."""
        entry = self._entry(node.key)
        if self._closed or entry.task is not None or entry.summary is not None:
            return
        entry.asked = True
        work = self._work(entry, node, builder, target)
        entry.task = asyncio.create_task(work, name=f"context-summarize:{node.key[:12]}")

    async def _work(self, entry: Entry, node: Node, builder: NodeBuilder, target: Target | None) -> None:
        """Note what comes of the work before anybody who waits for it goes on."""
        try:
            await self._find([node])
            entry.summary = entry.summary or await self._made(node, builder, target, entry)
            entry.rows[node.place] = self.row_of(builder, node, entry.summary)
        except SummaryUnavailable:
            pass  # told by whoever asked the provider
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            told = "a summary could not be made; a fallback takes its place: %s"
            logger.error(told, traceback_of(error, self._services.config.redact))
        finally:
            entry.task = None
            entry.late = False  # what is started after it is other work
            self.version += 1

    async def _find(self, nodes: Sequence[Node]) -> None:
        """Take up what the store has of these nodes."""
        keys = [node.key for node in nodes if self._known(node) is None]
        try:
            found = await self._services.store.get(keys) if keys else {}
        except Exception as error:  # noqa: BLE001 - a store that fails costs its summaries only
            logger.warning("no summary can be read: %s", traceback_of(error, self._services.config.redact))
            return
        for key, summary in found.items():
            entry = self._entry(key)
            entry.summary, entry.from_store = summary, True
            self.version += 1

    async def _made(self, node: Node, builder: NodeBuilder, target: Target | None, entry: Entry) -> Summary:
        """Ask the provider for a summary, and store it.

        Raises:
            SummaryUnavailable: there is none.
        """
        if target is None or self._summarizer.is_paused(target):
            raise SummaryUnavailable("no provider is to be asked", kind="nobody")
        if entry.refusals >= MAX_REFUSALS:
            raise SummaryUnavailable("refused too often; a fallback takes its place", kind="refused")
        children = await self._children(node, builder, target)
        async with self._turns:  # what waits for a provider is not read before its turn
            async with self._reading:  # one after the other, so that they ask in the order in which they were started
                job = await read(make_job, node, builder, children, self._services.count)
            started = self._services.clock()
            try:
                summary = await self._summarizer.make(job, target)
            except SummaryUnavailable as error:
                entry.refusals += error.refused
                self._teller.failed(job, error)
                raise
        await self._services.store.put(summary)
        self._teller.made(summary, self._services.clock() - started)
        return summary

    async def _children(self, node: Node, builder: NodeBuilder, target: Target) -> list[Summary]:
        """The texts below a node.

        Raises:
            SummaryUnavailable: one of them cannot be had. Nothing is merged from a fallback.
        """
        for child in node.children:
            self.start(child, builder, target)
        await self.settled(child.key for child in node.children)
        await self._find(node.children)  # a compaction may have let go of some
        texts = [summary for child in node.children if (summary := self._known(child)) is not None]
        if len(texts) < len(node.children):
            raise SummaryUnavailable("a part of it could not be summarised", kind="part")
        return texts

    # --- waiting ----------------------------------------------------------------------------------------------------

    async def get(
        self, nodes: Sequence[Node], builder: NodeBuilder, target: Target | None, seconds: float | None
    ) -> list[Node]:
        """Have these summaries made and wait for them; fallbacks take the place of those that cannot be had.

        Args:
            seconds: to wait at most, but not again for what was late once; None = as long as it takes.

        Returns:
            The nodes whose summaries are late: their work goes on.
        """
        for node in nodes:
            self.start(node, builder, target)
        entries = [entry for node in nodes if not ((entry := self._entry(node.key)).late and seconds is not None)]
        tasks = {entry.task for entry in entries if entry.task is not None}
        if tasks and not self._stopped.is_set():
            await until_done(tasks, seconds, self._stopped, self._is_cancelled)
            for entry in entries:
                entry.late = entry.task is not None
        late = [node for node in nodes if self.status(node.key) in (Status.UNDER_WAY, Status.LATE)]
        await self.place([node for node in nodes if node not in late], builder)
        return late

    async def settled(self, keys: Iterable[str]) -> None:
        """Until nothing is under way for any of these keys. Nobody's request: it does not count as waited for."""
        keys = list(keys)
        while tasks := [entry.task for key in keys if (entry := self._entries.get(key)) and entry.task is not None]:
            await asyncio.wait(tasks)

    def stop_waiting(self) -> None:
        """End every wait now: the host has cancelled. The work itself goes on."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """True while the host has cancelled."""
        return self._stopped.is_set() or self._is_cancelled()

    def resume_waiting(self) -> None:
        """Waits are allowed again."""
        self._stopped.clear()

    # --- fallbacks --------------------------------------------------------------------------------------------------

    async def place(self, nodes: Sequence[Node], builder: NodeBuilder) -> None:
        """Make the rows of these nodes from what is known or stored, else from fallbacks until the next compaction.

        No provider is waited for.
        """
        nodes = [node for node in nodes if self.shown(node) is None]
        await self._find(nodes)
        for node in nodes:
            text = self._known(node) or await self._fallback(node, builder)
            entry = self._entry(node.key)
            if entry.summary is None:  # it may have come meanwhile
                entry.fallback, entry.stands_in = text, True
            entry.rows[node.place] = self.row_of(builder, node, entry.summary or text)
            self.version += 1
            await asyncio.sleep(0)  # making a row takes a few milliseconds

    async def _fallback(self, node: Node, builder: NodeBuilder) -> Summary:
        entry = self._entry(node.key)
        if entry.fallback is None:
            await self._find(node.children)
            below = [self._known(child) or await self._fallback(child, builder) for child in node.children]
            entry.fallback = await read(fallback, node, builder, below, self._services.count)
        return entry.fallback

    # --- the life of a session --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A compaction begins: fallbacks stand in no more, so that their summaries are asked for again."""
        for entry in self._entries.values():
            if entry.stands_in:
                entry.stands_in = False
                self.version += 1

    def compacted(self, shown: Iterable[ShownNode]) -> None:
        """A compaction has been made: what has failed may be asked again, and what no view shows is let go of."""
        keep = set()
        for item in shown:
            keep.add(item.node.key)
            if not (item.line or item.summary.fallback):  # what a view shows is what counts
                entry = self._entry(item.node.key)
                entry.summary, entry.rows[item.node.place] = item.summary, item
        for key, entry in list(self._entries.items()):
            entry.asked = False
            if key not in keep and entry.task is None:
                del self._entries[key]
                if entry.refusals:
                    self._entries[key] = Entry(refusals=entry.refusals)
        self.version += 1

    def forget_history(self) -> None:
        """The history has been replaced: its rows are void. Calls under way still fill the store."""
        for entry in self._entries.values():
            entry.rows.clear()
            entry.asked = entry.stands_in = entry.late = False
        self.version += 1

    def forget_refusals(self) -> None:
        """Ask again for keys that were refused too often."""
        for entry in self._entries.values():
            entry.refusals = 0

    async def close(self) -> None:
        """Cancel what is under way and start nothing more."""
        self._closed = True
        await end_tasks([entry.task for entry in self._entries.values() if entry.task is not None])
