"""A session of many windows: views, the tree's depth, the summaries' share and what the provider reads stay bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.stores.memory import MemoryStore
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.effort import full
from tests.support.recorder import recording
from tests.support.views import notes

WINDOW, OUTPUT, MARGIN = 12_000, 1_000, 1_000
BUDGET = WINDOW - OUTPUT - MARGIN
SHARE = 0.28
COPIES = full(3, 1)
MOST_MERGES = 6


@dataclass(slots=True)
class Seen:
    """What a long session showed: of each view its tokens, those of its summaries and notes, and their number."""

    history_tokens: int
    views: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    """Highest level in each view."""
    first_levels: list[int] = field(default_factory=list)
    """Level of the summary that holds the first row, in each view that has one."""
    provider_input: int = 0
    calls: int = 0
    distinct: int = 0
    """Keys of the summaries that were made."""


def long_session(copies: int) -> list[JsonRow]:
    """The recording so many times over; user rows are numbered, so that no two stretches are the same."""
    rows = [dict(row) for copy in range(copies) for row in recording()[bool(copy) :]]
    for at, row in enumerate(rows):
        if row["role"] == "user":
            row["content"] = f"{row['content']} (line {at})"
    return rows


class Watching(MemoryStore):
    """Remembers the keys of what was made."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()

    async def put(self, summary):
        self.keys.add(summary.key)
        await super().put(summary)


async def play(rows: Sequence[JsonRow]) -> Seen:
    """Run the session as a loop does; views are measured from their rows, each distinct row once."""
    counter = TokenCounter()
    await counter.load()
    sizes: dict[str, int] = {}

    def size(row: JsonRow) -> int:
        text = repr(row)
        if text not in sizes:
            sizes[text] = measure(row, counter.count)
        return sizes[text]

    provider = OfflineProvider(counter.count, context_window=WINDOW, max_output_tokens=OUTPUT)
    store = Watching()
    manager = SummarizingContextManager(store=store, safety_margin=MARGIN, summary_share=SHARE)
    seen = Seen(sum(measure(row, counter.count) for row in rows))
    for row in rows:
        if row["role"] == "assistant":
            view = await manager.get_messages_for_request(provider=provider)
            nodes = [row for row in view if "key" in (row.get("metadata") or {})]
            seen.views.append(sum(map(size, view)))
            seen.summaries.append(sum(map(size, nodes)) + sum(size(row) for row in view if row == notes(view)))
            seen.counts.append(len(nodes))
            seen.levels.append(max((node["metadata"]["level"] for node in nodes), default=0))
            seen.first_levels += [node["metadata"]["level"] for node in nodes[:1]]
        await manager.add_message(row)
        await manager.settle()  # what an answer of the model leaves time for
    taken = await manager.statistics()
    await manager.close()
    seen.provider_input, seen.calls, seen.distinct = taken.input_tokens, taken.calls, len(store.keys)
    return seen


@pytest.fixture(scope="module")
def seen() -> Seen:
    """A session of some 120,000 tokens a copy, 12 budgets long."""
    return asyncio.run(play(long_session(COPIES)))


def test_every_view_is_inside_its_budget(seen: Seen) -> None:
    """Measured from the rows of each view, and no view is empty of what went before."""
    assert seen.history_tokens > 11 * COPIES * BUDGET
    assert max(seen.views) <= BUDGET
    assert min(seen.counts[len(seen.counts) // 10 :]) > 0


def test_views_do_not_grow_with_the_session(seen: Seen) -> None:
    """The mean view of the last fifth is that of the second, within a quarter."""
    fifth = len(seen.views) // 5
    second, last = (sum(part) / fifth for part in (seen.views[fifth : 2 * fifth], seen.views[-fifth:]))
    assert last < 1.25 * second


def test_summaries_keep_to_their_share_on_average(seen: Seen) -> None:
    """Where nothing is left to merge the share yields: in a window as small as this by a fifth on average, at most."""
    assert SHARE * BUDGET / 2 < sum(seen.summaries) / len(seen.summaries) <= 1.2 * SHARE * BUDGET
    assert max(seen.summaries) < BUDGET / 2


def test_no_fact_is_merged_more_than_six_times(seen: Seen) -> None:
    """A level is a merge: the tree grows with the logarithm of the session."""
    assert 2 <= max(seen.levels) <= MOST_MERGES
    assert seen.first_levels[-1] <= MOST_MERGES
    assert seen.first_levels == sorted(seen.first_levels), "what is merged is not taken apart again"


def test_the_provider_reads_little_more_than_the_history_once(seen: Seen) -> None:
    """Instructions and merges included; no key is asked for twice."""
    assert seen.history_tokens / 2 < seen.provider_input <= 1.45 * seen.history_tokens
    assert seen.calls == seen.distinct > 33 * COPIES
