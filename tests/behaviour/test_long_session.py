"""A session of many windows: views, the tree's depth, the summaries' share and what the provider reads stay bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest

from context_summarize.providers.offline import OfflineProvider
from context_summarize.tokens.counter import TokenCounter
from tests.support.managed import Managed
from tests.support.recorder import recording
from tests.support.views import nodes, notes, size

WINDOW, OUTPUT, MARGIN = 12_000, 1_000, 1_000
BUDGET = WINDOW - OUTPUT - MARGIN
SHARE = 0.28
COPIES = 2
"""Of a session of some 120,000 tokens, 12 budgets long."""
MOST_MERGES = 6
"""A level is a merge: the tree grows with the logarithm of the session."""


@pytest.mark.ci
async def test_a_session_of_many_windows_stays_bounded():
    """The recording so many times over, with numbered user rows: no two stretches are the same."""
    rows = [dict(row) for copy in range(COPIES) for row in recording()[bool(copy) :]]
    made, views = Managed(safety_margin=MARGIN, summary_share=SHARE), []
    made.provider = OfflineProvider(TokenCounter().count, context_window=WINDOW, max_output_tokens=OUTPUT)
    for at, row in enumerate(rows):
        if row["role"] == "user":
            row["content"] = f"{row['content']} (line {at})"
        if row["role"] == "assistant":
            views.append(await made.view())
        await made.add([row])
        await made.manager.settle()  # what an answer of the model leaves time for
    taken = await made.manager.statistics()
    await made.manager.close()
    history, sizes, fifth = size(rows), [size(view) for view in views], len(views) // 5
    assert history > 11 * COPIES * BUDGET

    assert max(sizes) <= BUDGET
    assert sum(sizes[-fifth:]) < 1.25 * sum(sizes[fifth : 2 * fifth]), "views grow with the session"
    assert all(map(nodes, views[fifth // 2 :])), "a view is empty of what went before"

    # Where nothing is left to merge the share yields: in a window as small as this by a fifth on average, at most.
    summaries = [size([*nodes(view), *filter(None, [notes(view)])]) for view in views]
    assert SHARE * BUDGET / 2 < sum(summaries) / len(summaries) <= 1.2 * SHARE * BUDGET
    assert max(summaries) < BUDGET / 2

    levels = [[node["metadata"]["level"] for node in nodes(view)] for view in views if nodes(view)]
    assert 2 <= max(map(max, levels)) <= MOST_MERGES
    apart = sum(before[0] > after[0] for before, after in pairwise(levels))
    assert apart <= len(levels) / 20, "what is merged for room alone is taken apart again, and seldom"

    # Instructions, merges and what stands around each part included; no key is asked for twice.
    assert history / 2 < taken.input_tokens <= 1.5 * history
    assert taken.calls == len({summary.key for summary in made.store.summaries}) > 33 * COPIES
