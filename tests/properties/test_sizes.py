"""Rows and budgets of any size: a request is served, its pairs are whole, and a large row costs few calls."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.testing import ScriptedProvider, broken_pairs
from tests.support.effort import SMALL_EXAMPLES
from tests.support.managed import Managed
from tests.support.rows import assistant, call, result, user

SIZES = st.integers(0, 17).flatmap(lambda power: st.integers(2**power // 2, 2**power))
"""Characters, each order of magnitude as often as another."""
BUDGETS = st.sampled_from([1, 600, 2_500, 40_000, 10**9, 10**30])
TEXTS = st.sampled_from(["word ", "x", "\u0300", "完", "\n", "glpat-", "{", "value-7 ", "\U0001f600"])


@given(sizes=st.lists(st.tuples(SIZES, TEXTS), min_size=1, max_size=6), budget=BUDGETS)
@settings(max_examples=SMALL_EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rows_of_any_size_are_served_in_a_bounded_number_of_calls(sizes, budget):
    async def run() -> None:
        made = Managed(
            budget, provider=lambda: ScriptedProvider(context_window=8_000, max_output_tokens=500), keep_recent=2
        )
        rows: list[Any] = []
        for turn, (size, text) in enumerate(sizes):
            body = (text * size)[:size]
            asked = call(f"c{turn}", path=body[:2_000])
            added = [user(body), asked, result(f"c{turn}", body), assistant(f"Read {turn}.")]
            rows += added
            assert not broken_pairs(await (await made.add(added)).view())
        assert await made.rows() == rows
        assert made.provider.calls <= 10 * len(rows) + len(sizes)
        await made.manager.close()

    asyncio.run(run())
