"""The state of a session: its log, its texts and its cuts; and the view that follows from them."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from context_summarize.background import in_thread
from context_summarize.core.cut import Cut
from context_summarize.core.draft import PlanInput
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.parts import parts_of
from context_summarize.core.plan import ends_for
from context_summarize.core.thread import Thread
from context_summarize.core.view import View, first_row, nodes_of, view
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import traceback_of
from context_summarize.session.beside import Written, retained_rows, written
from context_summarize.session.host import Host
from context_summarize.session.request_limits import RequestLimits
from context_summarize.session.saved import Saved
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services
from context_summarize.tokens.measure import measure

logger = logging.getLogger(__name__)


class Session:
    """All that changes in a session. What a request shows is `view()`, a function of the first three, of whether the
    host writes the system prompt, and of whether the model has `recall`:

    * `log`: the rows, and what follows from them alone. It grows; another history is another log.
    * `texts`: the summaries by key. They come.
    * `cuts`: the last compaction, and the one before it. A new cut is one assignment.

    Beside them stands `held`, the reminders that the host retains, and what only decides when to look, to ask, to wait
    and to tell: `is_resumed`, `tight_at`, `last` and `is_late` here, the number of requests in `services.totals`, the
    calls under way, late or refused in `texts`, what each provider has refused in the summariser, the host's last
    options and its providers' windows, refusals and figures in `host`, whether the user's patterns were too slow in
    `services.redact`, rows that come before the history's file is read, and what was announced. All else is a cache.
    """

    def __init__(self, services: Services, host: Host, texts: SummaryRegistry) -> None:
        self.services, self.host, self.texts = services, host, texts
        self.turn = asyncio.Lock()
        """Held by whoever looks at the state to change the log or the cuts; not by rows that are added, nor while a
        request waits for summaries."""
        self.saved = Saved(services, host.session_id)
        self.log = self.fresh()
        self.thread = self._new_thread()
        """A cache: the readings of the log's rows."""
        self.cuts: tuple[Cut, ...] = (Cut(),)
        """The one in force last; before it may stand the one that `undo` puts in force again."""
        self.is_resumed = False
        """True once the store was asked for the cuts of this log."""
        self._resuming = asyncio.Lock()
        """Held while it is asked: threads read the log for it."""
        self.tight_at = -math.inf
        """How many requests had been served before the last compaction whose view did not fit."""
        self.last: tuple[Log | None, int, int] = (None, 0, 0)
        """The log of the last request, how many rows it had, and its budget."""
        self.is_late = False
        """True if it went on without summaries that it had waited for."""
        self.held: tuple[Cut | None, tuple[JsonRow, ...], int] = (None, (), 0)
        """Reminders that requests with this cut have shown because the host wants them whole, and their tokens."""
        self._written: Written | None = None
        """A cache: the thread of the newest cut."""

    def fresh(self) -> Log:
        """Returns a log without rows."""
        config, prompts = self.services.config, self.services.prompts
        own = () if isinstance(config.redact, bool) else config.redact
        return Log(
            self.services.count,
            self.services.redact,
            recall=self.host.offers_recall(),
            summary_role=config.summary_role,
            hashes=("\n".join([prompts.segment.hash, *own]), prompts.merge.hash),
        )

    def look_for_recall(self) -> None:
        """Looks whether the model has the tool `recall`; if so, summaries and marks of cuts say how to use it."""
        if self.log.recall != self.host.offers_recall():
            self.log.recall = not self.log.recall
            self.log.forget_before(len(self.log))
            self._written = None

    def _new_thread(self) -> Thread:
        return Thread(self.log, self.services.prompts.rule_signs, self.services.prompts.rules_heading)

    @property
    def cut(self) -> Cut:
        """The cut in force."""
        return self.cuts[-1]

    def begin(self, log: Log, pins: tuple[int, ...] = (), *, is_resumed: bool = False) -> None:
        """Begins with another log; `is_resumed` if it has no saved cut."""
        self.log, self.cuts, self.is_resumed = log, (Cut(pins=pins),), is_resumed
        self.thread, self.held, self.is_late = self._new_thread(), (None, (), 0), False
        self.tight_at = -math.inf

    async def resume(self) -> None:
        """Takes up the saved cut of a new log, once. Calls no provider; not to be called by the holder of the turn."""
        await self.host.counter.load()
        async with self._resuming:
            while not self.is_resumed:
                await self._take_up(self.log)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Takes the turn for the time of the block, once the log has taken up its saved cut."""
        while True:
            await self.resume()
            async with self.turn:
                if self.is_resumed:  # else another log has begun meanwhile
                    yield
                    return

    async def _take_up(self, log: Log) -> None:
        pins, cuts = self.cut.pins, await self.saved.find(log)
        if self.log is not log:
            return
        newest = replace(cuts[-1], pins=tuple(sorted({*cuts[-1].pins, *pins})))
        self.cuts, self.is_resumed = (*cuts[:-1], newest), True
        if newest.unsent_at == log.rendered_rows > 0:
            self.saved.put(log, self.cuts)
        nodes = nodes_of(log, newest)
        await self.texts.look_up(nodes)
        self.services.totals.from_cache += sum(self.texts.text_of(node) is not None for node in nodes)

    async def shown(self) -> View:
        """Returns the view of the cut in force. First it computes what takes long in a thread.

        A text that the store has lost is a fallback from now on.
        """
        while True:
            log, cut = self.log, self.cut
            first = first_row(log, cut)
            if uncounted := log.characters_from(first, uncounted=True):
                await in_thread(uncounted, log.take_in, first)
            if cut.groups:
                await self._have_texts(log, cut)
                cut = self.cut
                await self.write_thread(log, cut)
            if self.log is log and self.cut is cut:
                return self.view()

    async def _have_texts(self, log: Log, cut: Cut) -> None:
        if cut.is_bare:
            return
        unknown = [node for node in nodes_of(log, cut) if self.texts.text_of(node, cut.fallbacks) is None]
        if not unknown:
            return
        await self.texts.look_up([node for node in unknown if node.key not in cut.fallbacks])
        gone = [node for node in unknown if self.texts.text_of(node, cut.fallbacks) is None]
        await self.texts.fall_back(gone, log)
        lost = [node.key for node in gone if node.key not in cut.fallbacks]
        if self.log is log and self.cut is cut:
            fallbacks = tuple(dict.fromkeys((*cut.fallbacks, *lost)))
            unsent_at = log.rendered_rows if lost else cut.unsent_at
            self.cuts = (*self.cuts[:-1], replace(cut, fallbacks=fallbacks, unsent_at=unsent_at))
            if lost:
                self.saved.put(log, self.cuts)

    async def prepared(self, cut: Cut) -> tuple[Cut, View]:
        """Returns a cut with fallbacks for the texts that are missing, and its view; it is not in force yet."""
        nodes = [] if cut.is_bare else nodes_of(self.log, cut)
        missing = [node for node in nodes if self.texts.text_of(node, cut.fallbacks) is None]
        await self.texts.fall_back(missing, self.log)
        cut = replace(cut, fallbacks=(*cut.fallbacks, *(node.key for node in missing)))
        await self.write_thread(self.log, cut)
        return cut, self.view(cut)

    async def write_thread(self, log: Log, cut: Cut) -> None:
        """Writes the thread of a cut, unless that has been done."""
        if self._written is None or not self._written.is_of(log, cut):
            self._written = await self.thread_of(log, cut)

    async def thread_of(self, log: Log, cut: Cut) -> Written:
        """Returns the thread of a cut, and its summaries as they stand beside it; a thread reads the rows."""
        found = Written(log, cut.shape)
        if not (cut.groups and cut.thread_room):
            return found
        shown = self.view(cut)
        try:
            return await in_thread(log.characters_from(0), written, self.thread, found, shown)
        except Exception as error:  # noqa: BLE001 - the thread quotes any text, and a request can do without it
            trace = traceback_of(error, self.services.config.redact)
            logger.error("the thread cannot be written, so the view has none: %s", trace)
            return found

    def view(self, cut: Cut | None = None, thread: Written | None = None) -> View:
        """Returns the view of a cut, by default the one in force, with its thread if that is written or given."""
        log, cut = self.log, cut or self.cut
        known = thread or (self._written if self._written and self._written.is_of(log, cut) else None)

        def text_of(node: Node) -> Summary | None:
            found = self.texts.text_of(node, cut.fallbacks)
            text = known.summaries.get((node.key, node.first_group)) if known else None
            return found if found is None or text is None else replace(found, text=text)

        found = view(log, cut, text_of, hides_system=self.host.system.text is not None)
        return found.with_thread(known.entry) if known and known.entry else found

    def retain(self, shown: View, wanted: Sequence[str]) -> tuple[tuple[JsonRow, ...], int]:
        """Returns the reminders that the next request shows beside its view, and their tokens."""
        shape = self.cut.shape
        held = self.held[1] if self.held[0] == shape else ()
        if wanted or self.held[1]:
            rows = tuple(retained_rows(self.log, shown, wanted, held))
            self.held = shape, rows, sum(measure(row, self.services.count) for row in rows)
        return self.held[1:]

    def plan_input(self, shown: View, limits: RequestLimits, fallbacks: Iterable[str] = ()) -> PlanInput:
        """Returns the input of a plan for the next cut.

        Args:
            shown: the view in force.
            fallbacks: keys whose texts code has written because no model did.
        """
        known = frozenset(fallbacks)

        def text_of(node: Node) -> Summary | None:
            return self.texts.text_of(node) or self.texts.text_of(node, known)

        ends = ends_for(self.cut, limits.own, self.services.config.segment_tokens)
        return PlanInput(
            log=self.log,
            cut=replace(self.cut, ends=ends),
            shown=shown,
            limits=limits.own,
            text_of=text_of,
            hides_system=self.host.system.text is not None,
        )

    async def cut_parts(self, limits: RequestLimits) -> None:
        """Cuts the log into parts as far as they are closed; a thread reads what is new."""
        cut = self.cut
        ends = ends_for(cut, limits.own, self.services.config.segment_tokens)
        if not cut.ends.lengths:  # the first base fixes the length
            self.cuts = (*self.cuts[:-1], replace(cut, ends=ends))
        parts = parts_of(self.log, ends)
        await in_thread(parts.backlog(), parts.render_ahead)

    def put(self, cut: Cut) -> None:
        """Makes a cut the one in force, and begins to save it."""
        self.cuts = (self.cut, cut)
        self.log.forget_before(self.log.row_of(cut.groups))
        self.texts.keep(nodes_of(self.log, cut))
        self.saved.put(self.log, self.cuts)

    def take_back(self, cut: Cut) -> None:
        """Makes an earlier cut the one in force, and begins to save it."""
        self.cuts = (cut,)
        self.texts.keep(nodes_of(self.log, cut))
        self.saved.put(self.log, self.cuts)

    def pin(self, groups: tuple[int, ...]) -> None:
        """Keeps these rendered groups verbatim from the next compaction on, and begins to save that."""
        self.cuts = (*self.cuts[:-1], replace(self.cut, pins=groups))
        self.saved.put(self.log, self.cuts)

    async def tokens(self) -> int:
        """Returns the tokens of the request as it would be sent now, as the provider counts; 0 while it is empty."""
        system = self.host.system
        if not len(self.log) and not system.text:
            return 0
        await self.resume()
        shown = await self.shown()
        return self.host.meter.correct(shown.tokens + system.tokens + self.held[2])

    async def close(self) -> None:
        """Waits for what is being saved, and closes the store."""
        await self.saved.flush()
        await self.services.store.close()
