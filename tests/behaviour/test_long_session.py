"""A session of many windows: views, the tree's depth, the summaries' share and what the provider reads stay bounded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from context_summarize.providers.offline import OfflineProvider
from context_summarize.testing import JsonRow
from context_summarize.tokens.counter import TokenCounter
from tests.support.effort import full
from tests.support.managed import Managed
from tests.support.recorder import recording
from tests.support.views import nodes, notes, size

WINDOW, OUTPUT, MARGIN = 12_000, 1_000, 1_000
BUDGET = WINDOW - OUTPUT - MARGIN
SHARE = 0.28
COPIES = full(3, 1)
MOST_MERGES = 6
COUNT = TokenCounter().count


@dataclass
class Seen:
    """A long session and its views."""

    rows: list[JsonRow]
    views: list[list[JsonRow]]
    taken: Any
    """The statistics at its end."""
    distinct: int
    """Keys of the summaries that were made."""

    @cached_property
    def history_tokens(self) -> int:
        return size(self.rows)

    @cached_property
    def sizes(self) -> list[int]:
        return [size(view) for view in self.views]


async def play(copies: int) -> Seen:
    """The recording so many times over, with numbered user rows: no two stretches are the same."""
    rows = [dict(row) for copy in range(copies) for row in recording()[bool(copy) :]]
    for at, row in enumerate(rows):
        if row["role"] == "user":
            row["content"] = f"{row['content']} (line {at})"
    made, views = Managed(safety_margin=MARGIN, summary_share=SHARE), []
    made.provider = OfflineProvider(COUNT, context_window=WINDOW, max_output_tokens=OUTPUT)
    for row in rows:
        if row["role"] == "assistant":
            views.append(await made.view())
        await made.add([row])
        await made.manager.settle()  # what an answer of the model leaves time for
    taken = await made.manager.statistics()
    await made.manager.close()
    return Seen(rows, views, taken, len({summary.key for summary in made.store.summaries}))


@pytest.fixture(scope="module")
def seen() -> Seen:
    """A session of some 120,000 tokens a copy, 12 budgets long."""
    return asyncio.run(play(COPIES))


def test_every_view_is_inside_its_budget_and_none_is_empty_of_what_went_before(seen):
    assert seen.history_tokens > 11 * COPIES * BUDGET
    assert max(seen.sizes) <= BUDGET
    assert all(map(nodes, seen.views[len(seen.views) // 10 :]))


def test_views_do_not_grow_with_the_session(seen):
    fifth = len(seen.views) // 5
    assert sum(seen.sizes[-fifth:]) < 1.25 * sum(seen.sizes[fifth : 2 * fifth])


def test_summaries_keep_to_their_share_on_average(seen):
    """Where nothing is left to merge the share yields: in a window as small as this by a fifth on average, at most."""
    summaries = [size([*nodes(view), *filter(None, [notes(view)])]) for view in seen.views]
    assert SHARE * BUDGET / 2 < sum(summaries) / len(summaries) <= 1.2 * SHARE * BUDGET
    assert max(summaries) < BUDGET / 2


def test_no_fact_is_merged_more_than_six_times(seen):
    """A level is a merge: the tree grows with the logarithm of the session."""
    levels = [[node["metadata"]["level"] for node in nodes(view)] for view in seen.views if nodes(view)]
    assert 2 <= max(map(max, levels)) <= MOST_MERGES
    of_the_first_row = [first for first, *_ in levels]
    assert of_the_first_row == sorted(of_the_first_row), "what is merged is not taken apart again"


def test_the_provider_reads_little_more_than_the_history_once(seen):
    """Instructions and merges included; no key is asked for twice."""
    assert seen.history_tokens / 2 < seen.taken.input_tokens <= 1.45 * seen.history_tokens
    assert seen.taken.calls == seen.distinct > 33 * COPIES
