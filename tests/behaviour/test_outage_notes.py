"""A provider that never answers: what users said is told all the same, by notes and by summaries that code writes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from amplifier_core.llm_errors import ProviderUnavailableError

from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import MemoryStore, ScriptedProvider
from tests.support.recorder import Clock

BUDGET, VALUES = 6_900, 120
THINGS = [("invoice", "INV-"), ("ticket", "TCK-"), ("order", "ORD-"), ("parcel", "PX"), ("contract", "K-")]


def values() -> list[str]:
    numbers = random.Random(7).sample(range(10_000, 99_999), VALUES)
    return [f"{THINGS[at % len(THINGS)][1]}{number}" for at, number in enumerate(numbers)]


def session() -> Iterator[JsonRow]:
    """Users who name a value each; lists of articles and prose of the agent between them."""
    pick = random.Random(11)
    for at, value in enumerate(values()):
        yield {"role": "user", "content": f"Hello, the {THINGS[at % len(THINGS)][0]} {value} is due. What is next?"}
        call = {"id": f"c{at}", "tool": "stock_list", "arguments": {"page": at}}
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
        articles = "\n".join(f"SKU-{pick.randrange(10**6)} {pick.randrange(90)} pieces" for _ in range(16))
        yield {"role": "tool", "tool_call_id": f"c{at}", "content": articles}
        yield {"role": "assistant", "content": f"Page {at} is mixed: some lines are low, the suppliers know. " * 4}


async def test_half_of_what_users_named_stands_in_a_small_view_though_no_summary_was_ever_made() -> None:
    clock = Clock()
    provider = ScriptedProvider(then=ProviderUnavailableError("down"), context_window=8_000, max_output_tokens=1_000)
    manager = SummarizingContextManager(store=MemoryStore(), clock=clock, sleep=clock.sleep)
    for row in session():
        if row["role"] == "assistant":
            await manager.get_messages_for_request(BUDGET, provider)
            clock.time += 5
        await manager.add_message(row)
    view = await manager.get_messages_for_request(BUDGET, provider)

    text = json.dumps(view)
    assert sum(value in text for value in values()) >= VALUES / 2
    assert await manager.get_token_count() <= BUDGET
    await manager.close()
