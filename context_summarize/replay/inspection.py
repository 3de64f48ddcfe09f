"""Inspects a recording without a model: its segments, what a window holds of it, what the next compaction does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from math import ceil

from context_summarize.background import finished
from context_summarize.config import Config
from context_summarize.core.draft import FRAME_TOKENS, Scene
from context_summarize.core.nodes import Node, to_make
from context_summarize.core.plan import next_compaction
from context_summarize.facts.ledger import prose_tokens
from context_summarize.messages.reading import is_hook
from context_summarize.messages.rows import SYSTEM_ROLES, JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.redaction.redactor import build_redactor
from context_summarize.replay.inspected import Inspection, NextCompaction, Original, RowLine, SegmentLine, WindowUse
from context_summarize.replay.kept_values import KeptValues, all_nodes
from context_summarize.session.host import request_budget
from context_summarize.session.limits import own_limits
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.session.snapshot import SummaryNode, take_snapshot, view_entries
from context_summarize.stores import MemoryStore
from context_summarize.summaries.prompts import load_prompts
from context_summarize.tokens.counter import loaded_counter
from context_summarize.tokens.measure import Count, measure
from context_summarize.transcript.rows import RenderedRow, render_rows

_LARGEST = 5
_WRAPPING = 60
"""Estimated tokens of a summary request besides its instruction and its rows: fences and message wrapping."""


async def inspect_rows(
    rows: Sequence[JsonRow],
    *,
    window: int,
    max_output: int,
    config: Config | None = None,
    progress: Callable[[int, int], None] = lambda rows, boundaries: None,
) -> Inspection:
    """Run a recording through a manager with the offline provider, and inspect the manager at the end.

    It reads no store, writes no file and does no background work. So the same recording always gives the same
    inspection, the one of `replay` with the offline provider and `prefetch_threshold=none`.

    Args:
        rows: messages, as `read_session` returns them.
        window, max_output: tokens of the model's context window, and the part of them kept free for its answer.
        progress: called after every row with the number of rows added and of compactions made so far.

    Raises:
        TemplateError: the prompt set of `config` is incomplete.
    """
    config = replace(config or Config(), cache=None, persistence=None, prefetch_threshold=None)
    counter = await loaded_counter()
    provider = OfflineProvider(counter.count, context_window=window, max_output_tokens=max_output)
    store = MemoryStore()
    manager = SummarizingContextManager(config=config, store=store)
    try:
        async for number in _fed(rows, manager, provider):
            progress(number, manager.conversation.view.compactions)
        view = await manager.get_messages_for_request(provider=provider)
        budget = await request_budget(config, None, provider)
        look = _Look(manager, config, counter.count, budget)
        await look.read_texts(store)
        return look.inspect_rows(view, window, await _totals(manager))
    finally:
        await manager.close()


async def _fed(
    rows: Sequence[JsonRow], manager: SummarizingContextManager, provider: OfflineProvider
) -> AsyncIterator[int]:
    """The number of each row once it has been fed; a view is asked for before every assistant row."""
    for number, row in enumerate(rows, 1):
        if row["role"] == "assistant":
            await manager.get_messages_for_request(provider=provider)
        await manager.add_message(row)
        await asyncio.sleep(0)  # else Ctrl-C waits for the next call
        yield number


async def _totals(manager: SummarizingContextManager) -> dict[str, int]:
    told = await manager.statistics()
    names = ("requests", "boundaries", "calls", "input_tokens", "output_tokens")
    return {name: getattr(told, name) for name in names}


class _Look:
    """Reads the state of a manager; changes nothing that affects a view."""

    def __init__(self, manager: SummarizingContextManager, config: Config, count: Count, budget: int) -> None:
        self._chat = manager.conversation
        finished(self._chat.advance())
        self._config = config
        self._prompts = load_prompts(config.prompts)
        self._count = count
        self._budget = budget
        # The offline provider's figures are ours, so that nothing is to be corrected.
        self._limits = own_limits(config, budget, 0)
        self._chat.history.count_rows(0, len(self._chat.history), count)
        self._known: dict[str, int] = {}
        """Tokens of the existing summaries, by key."""
        self._tree: tuple[SummaryNode, ...] = ()
        self._originals: dict[str, Original] = {}
        self._sizes = {leaf.key: self._source_tokens(leaf) for leaf in self._chat.builder.leaves}
        """Tokens of the text of each segment, by the key of its summary."""

    async def read_texts(self, store: MemoryStore) -> None:
        """Find out which summaries there are."""
        texts = await store.get([leaf.key for leaf in self._chat.builder.leaves])
        self._known = {key: summary.tokens for key, summary in texts.items()}
        snapshot = await take_snapshot(self._chat, store, (), self._count)
        self._tree = snapshot.nodes
        kept = KeptValues(snapshot.nodes, snapshot.messages, build_redactor(self._config.redact) or str)
        for node in all_nodes(snapshot.nodes):
            if node.summary is not None:
                self._originals[node.key] = Original(self._original_tokens(node, snapshot.messages), kept.kept(node))
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
            originals=self._originals,
            **totals,
        )

    def _segments(self) -> Iterator[SegmentLine]:
        for segment, leaf in zip(self._chat.builder.segments, self._chat.builder.leaves, strict=True):
            first, last = self._chat.history.message_range(segment.first_group, segment.end_group)
            size = self._known.get(leaf.key, segment.summary_tokens)
            folded = segment.end_group <= self._chat.view.frontier
            yield SegmentLine(segment.index, first, last, self._sizes[leaf.key], size, folded)

    def _original_tokens(self, node: SummaryNode, messages: Sequence[RenderedRow]) -> int:
        if node.children:
            return sum(self._original_tokens(child, messages) for child in node.children)
        known = self._sizes.get(node.key)
        return self._count(render_rows(messages[node.first - 1 : node.last])) if known is None else known

    def _source_tokens(self, leaf: Node) -> int:
        return self._count(render_rows(finished(self._chat.builder.source(leaf))))

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

    # --- the next compaction ----------------------------------------------------------------------------------------

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
                actions=self._chat.actions,
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
            least=ceil(self._config.min_fold * self._budget),
            calls=len(asked),
            input_tokens=sum(sizes),
            output_tokens=sum(prose_tokens(node.summary_tokens, node.level) for node in asked),
        )

    def _framed(self, node: Node) -> int | None:
        known = self._known.get(node.key)
        return None if known is None else known + FRAME_TOKENS

    def _call_tokens(self, node: Node) -> int:
        """Tokens of the request that makes a node."""
        template = self._prompts.merge if node.children else self._prompts.segment
        if node.children:
            source = sum(self._known.get(child.key, child.summary_tokens) for child in node.children)
        else:
            known = self._sizes.get(node.key)
            source = self._source_tokens(node) if known is None else known
        return self._count(template.body) + _WRAPPING + source
