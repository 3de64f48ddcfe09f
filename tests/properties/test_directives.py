"""User directives over random histories, merges and restarts: one that is summarised stays until it is taken back."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from context_summarize.facts.directives import merge_directives, share_out
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider, assistant, user
from tests.support.effort import EXAMPLES

THINGS = ("emojis", "tables", "footnotes", "acronyms", "adverbs", "headings")
BUDGET = 8_000

said = st.lists(st.tuples(st.sampled_from(THINGS), st.booleans()), min_size=1, max_size=8)
slow_ok = settings(max_examples=max(EXAMPLES // 10, 3), suppress_health_check=[HealthCheck.too_slow], deadline=None)


def _sentence(thing: str, forbids: bool) -> str:
    return f"Never use {thing}." if forbids else f"You can use {thing} again."


def _in_force(orders: list[tuple[str, bool]]) -> set[str]:
    last = dict(orders)
    return {_sentence(thing, True) for thing, forbids in last.items() if forbids}


@given(orders=said, cuts=st.lists(st.integers(0, 8), max_size=4))
def test_merged_in_any_way_the_same_are_in_force(orders: list[tuple[str, bool]], cuts: list[int]) -> None:
    """Cut into children anywhere, merged or side by side in a view, what stands is what was said last of each thing."""
    lines = [_sentence(*order) for order in orders]
    edges = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    children = [merge_directives([lines[a:b]]) for a, b in pairwise(edges)]
    for shown in (merge_directives(children), [one for share in share_out(children, 10_000, len) for one in share]):
        assert {one for one in shown if one.startswith("Never")} == _in_force(orders)
        assert len(set(shown)) == len(shown)


@given(
    orders=said, gaps=st.lists(st.integers(1, 30), min_size=8, max_size=8), resumes=st.lists(st.booleans(), min_size=8)
)
@slow_ok
def test_a_summarised_directive_is_in_every_later_view_until_it_is_taken_back(
    orders: list[tuple[str, bool]], gaps: list[int], resumes: list[bool]
) -> None:
    """The summariser keeps nothing, rows are merged, and the session is resumed now and then."""

    async def run() -> None:
        store = MemoryStore()
        provider = ScriptedProvider(then="Goal: something was asked for. State: it was done.")
        manager = SummarizingContextManager(store=store, summary_share=0.15)
        await manager.add_message(user("Hello, let us begin."))
        for at, order in enumerate(orders):
            await manager.add_message(assistant("Yes?"))
            await manager.add_message(user(f"{_sentence(*order)} That is all for turn {at}."))
            for turn in range(gaps[at]):
                await manager.add_message(assistant(f"Part {at}-{turn} was read. " + "It says little. " * 30))
                await manager.add_message(user(f"Please look at part {at}-{turn}."))
            if resumes[at]:
                rows = await manager.get_messages()
                await manager.close()
                manager = SummarizingContextManager(store=store, summary_share=0.15)
                await manager.set_messages(rows)
            view = await manager.get_messages_for_request(BUDGET, provider=provider)
            _check(view, orders[: at + 1])
        await manager.close()

    asyncio.run(run())


def _check(view: list[dict[str, Any]], orders: list[tuple[str, bool]]) -> None:
    text = "\n".join(str(row["content"]) for row in view)
    for one in _in_force(orders):
        assert one in text, (one, orders)
    summaries = "\n".join(str(row["content"]) for row in view if row["role"] == "system")
    for thing, forbids in dict(orders).items():
        if not forbids and f'"{_sentence(thing, False)}"' in summaries:
            assert f'- "{_sentence(thing, True)}"' not in summaries, (thing, orders)
