"""Rows and budgets of any size: a request is served, its pairs are whole, and a large row costs few calls."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider, broken_pairs
from tests.support.rows import assistant, call, feed, result, user
from tests.support.views import untimed

SIZES = st.integers(0, 17).flatmap(lambda power: st.integers(2**power // 2, 2**power))
"""Characters, each order of magnitude as often as another."""
BUDGETS = st.sampled_from([1, 600, 2_500, 40_000, 10**9, 10**30])
TEXTS = st.sampled_from(["word ", "x", "\u0300", "完", "\n", "glpat-", "{", "value-7 ", "\U0001f600"])


@given(
    sizes=st.lists(st.tuples(SIZES, TEXTS), min_size=1, max_size=8),
    budget=BUDGETS,
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rows_of_any_size_are_served_in_a_bounded_number_of_calls(sizes: list[tuple[int, str]], budget: int) -> None:
    async def run() -> None:
        provider = ScriptedProvider(context_window=8_000, max_output_tokens=500)
        manager = SummarizingContextManager(cache="memory", keep_recent=2)
        rows: list[Any] = []
        for turn, (size, text) in enumerate(sizes):
            body = (text * size)[:size]
            added = [
                user(body),
                call(f"c{turn}", path=body[:2_000]),
                result(f"c{turn}", body),
                assistant(f"Read {turn}."),
            ]
            await feed(manager, added)
            rows += added
            assert not broken_pairs(await manager.get_messages_for_request(budget, provider))
        assert untimed(await manager.get_messages()) == rows
        assert provider.calls <= 10 * len(rows) + len(sizes)
        await manager.close()

    asyncio.run(run())
