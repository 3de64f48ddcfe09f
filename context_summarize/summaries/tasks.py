"""`SummaryTasks`: the one registry of summaries: not asked, under way, late, known, failed, refused, or a fallback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from context_summarize.background import end_tasks, until_done
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.view_state import ShownNode
from context_summarize.errors import SummaryUnavailable
from context_summarize.redaction import traceback_of
from context_summarize.summaries.job import Target
from context_summarize.summaries.maker import SummaryMaker
from context_summarize.summaries.status import MAX_REFUSALS, Entry, Status

logger = logging.getLogger(__name__)

_MOST_FALLBACKS = 512
"""Fallback summaries that are kept while nobody can be asked: they are the same each time."""

Show = Callable[[NodeBuilder, Node, Summary], ShownNode]
"""Makes the row that stands for a node."""


class SummaryTasks:
    """Starts, shares, waits for and remembers the making of summaries.

    Asking for a status or a size starts nothing. A call is made once per key, whoever asks meanwhile. Work outlives the
    request that started it: its result reaches the store by itself.

    Args:
        redact: the setting of that name, for errors that are logged.
        is_cancelled: whether the host has cancelled; then nobody waits.
    """

    def __init__(
        self,
        maker: SummaryMaker,
        show: Show,
        *,
        redact: bool | Sequence[str],
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._maker = maker
        self._redact = redact
        self.row_of: Show = show
        self._is_cancelled = is_cancelled
        self._entries: dict[str, Entry] = {}
        self._stopped = asyncio.Event()
        self._closed = False
        self.version = 0
        """Grows with every change of a status: a plan made at the same version is still right."""

    def _changed(self) -> None:
        self.version += 1

    # --- what is known ----------------------------------------------------------------------------------------------

    def status(self, key: str) -> Status:
        """What is known of a key."""
        entry = self._entries.get(key)
        return Status.UNASKED if entry is None else entry.status()

    def shown(self, node: Node) -> ShownNode | None:
        """The row that stands for a node: its summary's, or that of the fallback in its place; None without either."""
        entry = self._entries.get(node.key)
        row = entry.rows.get(node.place) if entry is not None else None
        return row if row is not None and entry is not None and row.summary is entry.text() else None

    def rows(self, nodes: Iterable[Node]) -> list[ShownNode]:
        """The rows that stand for these nodes, those that are not known aside."""
        return [shown for node in nodes if (shown := self.shown(node)) is not None]

    def texts(self, nodes: Iterable[Node]) -> list[tuple[Node, Summary]]:
        """The summaries of these nodes that are known, fallbacks aside."""
        return [(node, summary) for node in nodes if (summary := self._known(node)) is not None]

    def size_of(self, node: Node) -> int | None:
        """Tokens of that row."""
        shown = self.shown(node)
        return None if shown is None else shown.tokens

    def is_known(self, node: Node) -> bool:
        """True if the text of a node is known, or a fallback takes its place."""
        entry = self._entries.get(node.key)
        return entry is not None and entry.text() is not None

    def is_from_store(self, key: str) -> bool:
        """True for a summary that took no call of this session."""
        entry = self._entries.get(key)
        return entry is not None and entry.summary is not None and entry.from_store

    # --- making -----------------------------------------------------------------------------------------------------

    def start(self, node: Node, builder: NodeBuilder, target: Target | None, *, placed: bool = True) -> None:
        """Have a summary made unless it is known or under way.

        Args:
            placed: make the node's row as well; else it is wanted for a merge alone.
        """
        entry = self._entries.setdefault(node.key, Entry())
        if self._closed or entry.task is not None or entry.summary is not None:
            return
        entry.asked = True
        working = self._work(entry, lambda: self._make(node, builder, target, entry, placed))
        entry.task = asyncio.create_task(working, name=f"context-summarize:{node.key[:12]}")

    async def _work(self, entry: Entry, make: Callable[[], Awaitable[Summary]]) -> None:
        """Note what comes of the work before anybody who waits for it goes on."""
        try:
            entry.summary = await make()
        except SummaryUnavailable:
            pass  # told by whoever asked the provider
        except Exception as error:  # noqa: BLE001 - logged without its secrets
            told = "a summary could not be made; a fallback takes its place: %s"
            logger.error(told, traceback_of(error, self._redact))
        finally:
            entry.task = None
            entry.late = False  # what is started after it is other work
            self._changed()

    async def _make(
        self, node: Node, builder: NodeBuilder, target: Target | None, entry: Entry, placed: bool
    ) -> Summary:
        found = await self._maker.find(node.key)
        entry.from_store = found is not None
        summary = found or await self._asked(node, builder, target, entry)
        if placed:
            entry.rows[node.place] = self.row_of(builder, node, summary)
        return summary

    async def _asked(self, node: Node, builder: NodeBuilder, target: Target | None, entry: Entry) -> Summary:
        if target is None or not self._maker.may_ask(target):
            raise SummaryUnavailable("no provider is to be asked", kind="nobody")
        if entry.refusals >= MAX_REFUSALS:
            raise SummaryUnavailable("refused too often; a fallback takes its place", kind="refused")
        children = await self._children(node, builder, target)
        try:
            return await self._maker.make(node, builder, children, target)
        except SummaryUnavailable as error:
            entry.refusals += error.refused
            raise

    async def _children(self, node: Node, builder: NodeBuilder, target: Target) -> list[Summary]:
        """The texts below a node.

        Raises:
            SummaryUnavailable: one of them cannot be had. Nothing is merged from a fallback.
        """
        for child in node.children:
            if self._known(child) is None:
                self.start(child, builder, target, placed=False)
        await self.settled(child.key for child in node.children)
        found = [self._known(child) or await self._maker.find(child.key) for child in node.children]
        texts = [summary for summary in found if summary is not None]
        if len(texts) < len(node.children):
            raise SummaryUnavailable("a part of it could not be summarised", kind="part")
        return texts

    def _known(self, node: Node) -> Summary | None:
        entry = self._entries.get(node.key)
        return entry.summary if entry is not None else None

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
        await self._wait([node.key for node in nodes], seconds)
        late = [node for node in nodes if self.status(node.key) in (Status.UNDER_WAY, Status.LATE)]
        for node in nodes:
            if node not in late and self.shown(node) is None:
                await self._place(node, builder)
                await asyncio.sleep(0)  # making a row takes a few milliseconds
        return late

    async def find(self, nodes: Sequence[Node], builder: NodeBuilder) -> None:
        """Have the rows of these nodes from what is known or stored, else fallbacks. No provider is waited for."""
        idle = [node for node in nodes if self.status(node.key) not in (Status.UNDER_WAY, Status.LATE)]
        await self.get(idle, builder, None, None)
        await self.stand_in([node for node in nodes if self.shown(node) is None], builder)

    async def _wait(self, keys: Iterable[str], seconds: float | None) -> None:
        entries = [entry for key in keys if (entry := self._entries[key]).task is not None]
        if seconds is not None:
            entries = [entry for entry in entries if not entry.late]
        if not entries or self._stopped.is_set():
            return
        tasks = {entry.task for entry in entries if entry.task is not None}
        await until_done(tasks, seconds, self._stopped, self._is_cancelled)
        for entry in entries:
            entry.late = entry.task is not None

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

    async def stand_in(self, nodes: Sequence[Node], builder: NodeBuilder) -> None:
        """Have fallbacks take the place of these nodes until the next compaction begins."""
        for node in nodes:
            await self._place(node, builder)

    async def _place(self, node: Node, builder: NodeBuilder) -> None:
        """Make the row of a node, from its summary if that is known."""
        text = self._known(node) or await self._fallback(node, builder)
        entry = self._entries.setdefault(node.key, Entry())
        if entry.summary is None:  # it may have come meanwhile
            entry.fallback, entry.stands_in = text, True
        entry.rows[node.place] = self.row_of(builder, node, entry.summary or text)
        self._changed()

    async def _fallback(self, node: Node, builder: NodeBuilder) -> Summary:
        entry = self._entries.get(node.key)
        if entry is not None and entry.fallback is not None and not node.children:
            return entry.fallback
        children = [
            self._known(child) or await self._maker.find(child.key) or await self._fallback(child, builder)
            for child in node.children
        ]
        made = await self._maker.fallback(node, builder, children)
        if not node.children:
            self._entries.setdefault(node.key, Entry()).fallback = made
        return made

    # --- the life of a session --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A compaction begins: fallbacks stand in no more, so that their summaries are asked for again."""
        for entry in self._entries.values():
            if entry.stands_in:
                entry.stands_in = False
                self._changed()

    def compacted(self, shown: Iterable[ShownNode]) -> None:
        """A compaction has been made: what has failed may be asked again, and what no view shows is let go of."""
        keep = set()
        for item in shown:
            keep.add(item.node.key)
            self._note(item)
        spare = _MOST_FALLBACKS
        for key, entry in list(self._entries.items()):
            entry.asked = False
            if key in keep or entry.task is not None:
                continue
            spare -= entry.fallback is not None
            if entry.refusals or (entry.fallback is not None and spare >= 0):
                entry.summary, entry.stands_in, entry.rows = None, False, {}
            else:
                del self._entries[key]
        self._changed()

    def _note(self, item: ShownNode) -> None:
        """What a view shows is what counts."""
        entry = self._entries.setdefault(item.node.key, Entry())
        if not (item.line or item.summary.fallback):
            entry.summary = item.summary
            entry.rows[item.node.place] = item

    def forget_history(self) -> None:
        """The history has been replaced: its rows are void. Calls under way still fill the store."""
        for entry in self._entries.values():
            entry.rows.clear()
            entry.asked = entry.stands_in = entry.late = False
        self._changed()

    def forget_refusals(self) -> None:
        """Ask again for keys that were refused too often."""
        for entry in self._entries.values():
            entry.refusals = 0

    async def close(self) -> None:
        """Cancel what is under way and start nothing more."""
        self._closed = True
        await end_tasks([entry.task for entry in self._entries.values() if entry.task is not None])
