"""The state of a session: its log, its texts and its cuts; and the view that follows from them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from context_summarize.background import in_thread
from context_summarize.core.cut import Cut
from context_summarize.core.frames import thread_entry
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.parts import parts_of
from context_summarize.core.plan import PlanInput, ends_for
from context_summarize.core.view import View, nodes_of, view
from context_summarize.redaction import build_redactor
from context_summarize.session.host import Host
from context_summarize.session.request_limits import RequestLimits
from context_summarize.session.saved import MOST_CUTS, Saved
from context_summarize.session.turn import Turn
from context_summarize.summaries.registry import SummaryRegistry
from context_summarize.summaries.services import Services


class Session:
    """All that changes in a session. What a request shows is `view()`, a function of the first three:

    * `log`: the rows, and what follows from them alone. It grows; another history is another log.
    * `texts`: the summaries by key. They come.
    * `cuts`: the compactions, the newest last. A new cut is one assignment.

    Beside them stands what only decides when to look and to wait: `made_at` and `last_at` here, the keys that were
    waited for in vain in `texts`, and the providers' windows, refusals and figures in `host`. All else is a cache.
    """

    def __init__(self, services: Services, host: Host, texts: SummaryRegistry) -> None:
        self.services, self.host, self.texts = services, host, texts
        self.turn = Turn()
        """Held by whoever looks at the state to change the log or the cuts; not by rows that are added."""
        self.saved = Saved(services, host.session_id)
        self._redact = build_redactor(services.config.redact)
        self.log = self.fresh()
        self.cuts: tuple[Cut, ...] = (Cut(),)
        """The newest last; the ones before it are for `undo`."""
        self.is_resumed = False
        """True once the store was asked for the cuts of this log."""
        self.made_at: deque[int] = deque(maxlen=2)
        """How many requests had been served before each of the last compactions."""
        self.last_at = math.inf
        """The clock's time when the last request was served."""
        self.last: tuple[Log | None, int] = (None, 0)
        """The log of that request, and how many rows it had."""
        self._thread: tuple[Log, Cut, str] | None = None
        """A cache: the thread of the newest cut."""

    def fresh(self) -> Log:
        """Returns a log without rows."""
        config, prompts = self.services.config, self.services.prompts
        return Log(
            self.services.count,
            self._redact,
            recall=self.host.offers_recall(),
            summary_role=config.summary_role,
            hashes=(prompts.segment.hash, prompts.merge.hash),
        )

    @property
    def cut(self) -> Cut:
        """The cut in force."""
        return self.cuts[-1]

    def begin(self, log: Log, pins: tuple[int, ...] = (), *, is_resumed: bool = False) -> None:
        """Begins with another log; `is_resumed` if it has no saved cut."""
        self.log, self.cuts, self.is_resumed = log, (Cut(pins=pins),), is_resumed
        self.made_at.clear()

    async def resume(self) -> None:
        """Takes up the saved cut of a new log, once. Calls no provider; not to be called by the holder of the turn."""
        await self.host.counter.load()
        while not self.is_resumed:
            log, pins = self.log, self.cut.pins
            cuts = await self.saved.find(log)
            if self.log is log and not self.is_resumed:
                newest = replace(cuts[-1], pins=tuple(sorted({*cuts[-1].pins, *pins})))
                self.cuts, self.is_resumed = (*cuts[:-1], newest), True
                nodes = nodes_of(log, newest)
                await self.texts.look_up(nodes)
                self.services.totals.from_cache += sum(self.texts.text_of(node) is not None for node in nodes)

    async def shown(self, *, hides_system: bool) -> View:
        """Returns the view of the cut in force. First it computes what takes long in a thread.

        A text that the store has lost is a fallback from now on.
        """
        while True:
            log, cut = self.log, self.cut
            first = log.row_after(cut.groups, log.row_after_number(cut.rows) - cut.keep_recent)
            if uncounted := log.characters_from(first, uncounted=True):
                await in_thread(uncounted, log.make_entries_from, first)
            await self._have_texts(log, cut)
            cut = self.cut
            await self.write_thread(log, cut)
            if self.log is log and self.cut is cut:
                return self.view(hides_system=hides_system)

    async def _have_texts(self, log: Log, cut: Cut) -> None:
        if cut.is_bare:
            return
        nodes = nodes_of(log, cut)
        unknown = [node for node in nodes if self.texts.text_of(node, cut.fallbacks) is None]
        if not unknown:
            return
        await self.texts.look_up([node for node in unknown if node.key not in cut.fallbacks])
        lost = [node.key for node in unknown if self.texts.text_of(node) is None]
        await self.texts.fall_back([node for node in unknown if node.key in lost], log)
        if self.log is log and self.cut is cut:
            self.cuts = (*self.cuts[:-1], replace(cut, fallbacks=tuple(dict.fromkeys((*cut.fallbacks, *lost)))))

    async def write_thread(self, log: Log, cut: Cut) -> None:
        """Writes the thread of a cut, unless that has been done."""
        if self._written(log, cut) is None:
            self._thread = (log, replace(cut, pins=()), await self.thread_of(log, cut))

    async def thread_of(self, log: Log, cut: Cut) -> str:
        """Returns the thread of a cut; "" if it would quote nothing."""
        return ""

    def _written(self, log: Log, cut: Cut) -> str | None:
        known = self._thread
        return known[2] if known and known[0] is log and known[1] == replace(cut, pins=()) else None

    def view(self, cut: Cut | None = None, *, hides_system: bool) -> View:
        """Returns the view of a cut, by default the one in force, with its thread if that is written."""
        log, cut = self.log, cut or self.cut

        def text_of(node: Node) -> Summary | None:
            return self.texts.text_of(node, cut.fallbacks)

        found = view(log, cut, text_of, self.services.prompts.frame.fill, hides_system=hides_system)
        written = self._written(log, cut)
        return found.with_thread(thread_entry(log, written, cut.groups)) if written else found

    def nodes(self, cut: Cut) -> tuple[Node, ...]:
        """Returns the nodes of a cut of this log."""
        return nodes_of(self.log, cut)

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
            tokens=shown.tokens,
            limits=limits.own,
            text_of=text_of,
            frame=self.services.prompts.frame.fill,
            hides_system=limits.system_prompt is not None,
        )

    async def cut_parts(self, limits: RequestLimits) -> None:
        """Cuts the log into parts as far as they are closed; a thread reads what is new."""
        cut, log = self.cut, self.log
        ends = ends_for(cut, limits.own, self.services.config.segment_tokens)
        if not cut.ends.lengths:  # the first base fixes the length
            self.cuts = (*self.cuts[:-1], replace(cut, ends=ends))
        parts = parts_of(log, ends)
        await in_thread(parts.backlog(), parts.render_ahead)

    def put(self, cut: Cut) -> None:
        """Makes a cut the one in force, and begins to save it."""
        self.cuts = (*self.cuts, cut)[-MOST_CUTS - 1 :]
        self.log.forget_before(self.log.row_after(cut.groups, 0))
        self.texts.keep(nodes_of(self.log, cut))
        self.saved.put(self.log, self.cuts)

    def take_back(self, cut: Cut) -> None:
        """Makes the cut before the newest one, or an older one, the one in force, and begins to save it."""
        self.cuts = (*self.cuts[:-2], cut)
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
        shown = await self.shown(hides_system=system.text is not None)
        return self.host.meter.correct(shown.tokens + system.tokens)

    async def close(self) -> None:
        """Waits for what is being saved, and closes the store."""
        await self.saved.close()
        await self.services.store.close()
