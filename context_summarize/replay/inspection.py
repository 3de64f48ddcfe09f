"""What a recording shows without a model: its segments, what a window holds of it, what the next compaction does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from context_summarize.config import Config
from context_summarize.core.draft import FRAME_TOKENS, Scene
from context_summarize.core.nodes import Node, to_make
from context_summarize.core.plan import next_compaction
from context_summarize.facts.ledger import prose_tokens
from context_summarize.messages.reading import is_hook
from context_summarize.messages.rows import SYSTEM_ROLES, JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.session.host import request_budget
from context_summarize.session.limits import own_limits
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.session.snapshot import SummaryNode, take_snapshot, view_entries
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.prompts import load_prompts
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import Count, measure
from context_summarize.transcript.rows import render_rows

_LARGEST = 5
_WRAPPING = 60
"""Estimate of what a request for a summary holds beside its instruction and its rows: fences and message wrapping."""


@dataclass(frozen=True, slots=True)
class RowLine:
    """One row of the recording. Sizes here and below are in tokens."""

    row: int
    """Counted from 1 over all rows, as the lines of the file are, blank ones aside."""
    message: int | None
    """Its number in the frames of summaries; None for a row that is not rendered, such as a system row."""
    role: str
    tool: str | None
    """For a result: the tool that it is of, where that is known."""
    tokens: int


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """One segment: what is summarised by one call."""

    index: int
    first: int
    last: int
    """Messages, numbered as frames number them."""
    tokens: int
    """As the summariser is shown it."""
    summary_tokens: int
    """Size of its summary where one was made, with its exact values, else the size asked for."""
    folded: bool
    """True when the view shows a summary in its place."""


@dataclass(frozen=True, slots=True)
class WindowUse:
    """What the next request would hold. `system` to `free` make up the budget."""

    window: int
    budget: int
    threshold: int | None
    """Use at which a boundary is made; None where only a full budget makes one."""
    system: int
    pins: int
    """Rows that stand verbatim beside their summary: first and newest user message, rows marked critical."""
    summaries: int
    verbatim: int
    free: int
    """Below 0 where the request does not fit."""
    reserved: int
    """Kept free for the answer, and as a margin."""


@dataclass(frozen=True, slots=True)
class NextCompaction:
    """What the next boundary folds, by what is closed now."""

    first: int | None
    last: int | None
    """Messages that get a summary in their place; None when there are none."""
    segments: int
    merged: int
    """Summaries joined from several older ones."""
    shortened: int
    """Long rows that are cut to head and tail."""
    freed: int
    """Tokens that it would save if it were made now; of texts that are not made yet, by their estimated size."""
    calls: int
    """Summaries to be made."""
    input_tokens: int
    output_tokens: int
    """What those calls take, estimated."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A recording, seen through a window."""

    rows: int
    messages: int
    """Rows that a summariser is shown; the others are the host's own, such as system rows."""
    groups: int
    """Runs of rows that may not be cut, counted over what is closed."""
    largest_group: int
    """Rows of the longest one."""
    pins: int
    """Rows marked to stay verbatim: the host's system rows, and critical ones."""
    tokens: int
    segment_tokens: int
    summary_tokens: int
    segments: tuple[SegmentLine, ...]
    unsegmented: int
    """Messages after the last segment, too few or too new for another one."""
    largest: tuple[RowLine, ...]
    use: WindowUse
    next: NextCompaction
    requests: int
    boundaries: int
    calls: int
    input_tokens: int
    output_tokens: int
    """What the whole session takes from the provider, summaries alone. Measured with the offline provider's texts: a
    model reads the same rows, and merges texts of its own length."""
    tree: tuple[SummaryNode, ...]
    """The summaries that the session ends with, oldest first; their texts are the offline provider's."""


async def inspect_rows(
    rows: Sequence[JsonRow],
    *,
    window: int,
    max_output: int,
    config: Config | None = None,
    progress: Callable[[int, int], None] = lambda rows, boundaries: None,
) -> Inspection:
    """Run a recording through a manager with the offline provider, and look at what it holds at the end.

    Nothing is read from a store or written to a file, and nothing is made in the background: the same recording gives
    the same survey everywhere, that of `replay` with the offline provider and `prefetch_threshold=none`.

    Args:
        rows: messages as `read_session` gives them.
        window, max_output: tokens of the model's context window, and those of them kept free for its answer.
        progress: called after every row with the rows fed and the boundaries made so far.

    Raises:
        TemplateError: the prompt set of `config` is incomplete.
    """
    config = replace(config or Config(), cache=None, persistence=None, prefetch_threshold=None)
    counter = TokenCounter()
    await counter.load()
    provider = OfflineProvider(counter.count, context_window=window, max_output_tokens=max_output)
    store = MemoryStore()
    manager = SummarizingContextManager(config=config, store=store)
    try:
        for number, row in enumerate(rows, 1):
            if row["role"] == "assistant":
                await manager.get_messages_for_request(provider=provider)
            await manager.add_message(row)
            await asyncio.sleep(0)  # else Ctrl-C waits for the next call
            progress(number, manager.conversation.view.compactions)
        view = await manager.get_messages_for_request(provider=provider)
        budget = await request_budget(config, None, provider)
        look = _Look(manager, config, counter.count, budget)
        await look.read_texts(store)
        return look.inspect_rows(view, window, await _totals(manager))
    finally:
        await manager.close()


async def _totals(manager: SummarizingContextManager) -> dict[str, int]:
    told = await manager.statistics()
    names = ("requests", "boundaries", "calls", "input_tokens", "output_tokens")
    return {name: getattr(told, name) for name in names}


class _Look:
    """Reads what a manager holds; changes nothing that a view depends on."""

    def __init__(self, manager: SummarizingContextManager, config: Config, count: Count, budget: int) -> None:
        self._chat = manager.conversation
        self._config = config
        self._prompts = load_prompts(config.prompts)
        self._count = count
        self._budget = budget
        # The offline provider's figures are ours, so that nothing is to be corrected.
        self._limits = own_limits(config, budget, 0)
        self._chat.history.count_rows(0, len(self._chat.history), count)
        self._known: dict[str, int] = {}
        """Tokens of the summaries that there are, by key."""
        self._tree: tuple[SummaryNode, ...] = ()

    async def read_texts(self, store: MemoryStore) -> None:
        """Find out which summaries there are."""
        texts = await store.get([leaf.key for leaf in self._chat.builder.leaves])
        self._known = {key: summary.tokens for key, summary in texts.items()}
        self._tree = (await take_snapshot(self._chat, store, (), self._count)).nodes
        self._known |= {shown.node.key: shown.summary.tokens for shown in self._chat.view.nodes}

    def inspect_rows(self, view: Sequence[JsonRow], window: int, totals: dict[str, int]) -> Inspection:
        """What `view`, the request at the end, and the history tell."""
        history = self._chat.history
        segment_tokens, summary_tokens = self._chat.builder.segment_sizes or (0, 0)
        rendered = sum(row.rendered for row in history.rows)
        segments = tuple(self._segments())
        return Inspection(
            rows=len(history),
            messages=rendered,
            groups=len(history.groups),
            largest_group=max((group.end - group.start for group in history.groups), default=0),
            pins=len(history.pins),
            tokens=sum(history.tokens),
            segment_tokens=segment_tokens,
            summary_tokens=summary_tokens,
            segments=segments,
            unsegmented=rendered - (segments[-1].last if segments else 0),
            largest=self._largest(),
            use=self._use(view, window),
            next=self._next(),
            tree=self._tree,
            **totals,
        )

    def _segments(self) -> Iterator[SegmentLine]:
        for segment, leaf in zip(self._chat.builder.segments, self._chat.builder.leaves, strict=True):
            first, last = self._chat.history.message_range(segment.first_group, segment.end_group)
            size = self._known.get(leaf.key, segment.summary_tokens)
            folded = segment.end_group <= self._chat.view.frontier
            yield SegmentLine(segment.index, first, last, self._source_tokens(leaf), size, folded)

    def _source_tokens(self, leaf: Node) -> int:
        return self._count(render_rows(self._chat.builder.source(leaf)))

    def _largest(self) -> tuple[RowLine, ...]:
        history = self._chat.history
        numbers = list(accumulate(int(row.rendered) for row in history.rows))
        order = sorted(range(len(history)), key=lambda at: -history.tokens[at])[:_LARGEST]
        return tuple(
            RowLine(
                row=at + 1,
                message=numbers[at] if history.rows[at].rendered else None,
                role=history.rows[at].role,
                tool=self._tool(at),
                tokens=history.tokens[at],
            )
            for at in order
        )

    def _tool(self, at: int) -> str | None:
        """The tool that a row of results is of: as the call names it, else as the row does."""
        row = self._chat.history.rows[at]
        if not row.result_ids:
            return None
        group = self._chat.history.group_of(at) or next(iter(self._chat.history.open_groups()), None)
        called = self._chat.history.rows[group.start].calls if group else ()
        named = next((call.name for call in called if call.id == row.result_ids[0]), row.raw.get("name"))
        return named if isinstance(named, str) else None

    def _use(self, view: Sequence[JsonRow], window: int) -> WindowUse:
        state = self._chat.view
        system = pins = 0
        for entry in view_entries(self._chat, self._count):
            if entry.row["role"] in SYSTEM_ROLES and not is_hook(entry.row):
                system += entry.tokens
            elif entry.origin is not None and entry.origin < state.frontier_row:
                pins += entry.tokens
        summaries = sum(shown.tokens for shown in state.nodes)
        used = sum(measure(row, self._count) for row in view)
        config = self._config
        return WindowUse(
            window=window,
            budget=self._budget,
            threshold=int(config.compact_threshold * self._budget) if config.auto_compact else None,
            system=system,
            pins=pins,
            summaries=summaries,
            verbatim=used - system - pins - summaries,
            free=self._budget - used,
            reserved=window - self._budget,
        )

    # --- the next boundary ------------------------------------------------------------------------------------------

    def _next(self) -> NextCompaction:
        history, view = self._chat.history, self._chat.view
        shown = {item.node.place: item.tokens for item in view.nodes}
        plan = next_compaction(
            Scene(
                history=history,
                builder=self._chat.builder,
                groups=self._chat.groups,
                view=view,
                limits=self._limits,
                size_of=lambda node: shown.get(node.place) or self._framed(node),
                count=self._count,
            )
        )
        summarises = plan.frontier > view.frontier
        first, last = history.message_range(view.frontier, plan.frontier) if summarises else (None, None)
        made_by_code = self._config.compaction_strategy == "truncate"
        asked = [] if made_by_code else list(to_make(plan.missing, lambda node: node.key in self._known))
        sizes = [self._call_tokens(node) for node in asked]
        return NextCompaction(
            first=first,
            last=last,
            segments=plan.segments,
            merged=plan.merged,
            shortened=len(plan.shortened.keys() - view.shortened.keys()),
            freed=max(0, plan.freed),
            calls=len(asked),
            input_tokens=sum(sizes),
            output_tokens=sum(prose_tokens(node.summary_tokens) for node in asked),
        )

    def _framed(self, node: Node) -> int | None:
        known = self._known.get(node.key)
        return None if known is None else known + FRAME_TOKENS

    def _call_tokens(self, node: Node) -> int:
        """Tokens of the request by which a node is made."""
        template = self._prompts.merge if node.children else self._prompts.segment
        if node.children:
            source = sum(self._known.get(child.key, child.summary_tokens) for child in node.children)
        else:
            source = self._source_tokens(node)
        return self._count(template.body) + _WRAPPING + source
