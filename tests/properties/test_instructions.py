"""Instructions over random histories, merges and restarts: one that is summarised stands in every later view."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider
from tests.support.effort import EXAMPLES
from tests.support.rows import assistant, user
from tests.support.views import untimed

THINGS = ("emojis", "tables", "footnotes", "acronyms", "adverbs", "headings")
BUDGET = 8_000

said = st.lists(st.tuples(st.sampled_from(THINGS), st.booleans()), min_size=1, max_size=6)
slow_ok = settings(max_examples=max(EXAMPLES // 10, 3), suppress_health_check=[HealthCheck.too_slow], deadline=None)


def quoting(request: Any) -> str:
    """A summary that quotes the user's wishes in small letters; a merge of such summaries drops them."""
    wishes = re.findall(r"Reports with \w+ are best kept short", str(request.messages[-1].content))
    return f"Goal: something was asked for.\nStanding rules: {'; '.join(wishes).lower() or 'none'}\nState: it was done."


@given(
    orders=said, gaps=st.lists(st.integers(1, 30), min_size=6, max_size=6), resumes=st.lists(st.booleans(), min_size=6)
)
@slow_ok
def test_what_was_said_once_stands_in_every_later_view(
    orders: list[tuple[str, bool]], gaps: list[int], resumes: list[bool]
) -> None:
    async def run() -> None:
        store = MemoryStore()
        provider = ScriptedProvider(then=quoting)
        manager = SummarizingContextManager(store=store, summary_share=0.15)
        await manager.add_message(user("Hello, let us begin."))
        standing: list[str] = []
        for at, (thing, forbids) in enumerate(orders):
            sentence = f"Never use {thing}." if forbids else f"Reports with {thing} are best kept short."
            standing.append(sentence)
            await manager.add_message(assistant("Yes?"))
            await manager.add_message(user(f"{sentence} You can use them again."))
            for turn in range(gaps[at]):
                await manager.add_message(assistant(f"Part {at}-{turn} was read. " + "It says little. " * 30))
                await manager.add_message(user(f"Please look at part {at}-{turn}."))
            if resumes[at]:
                rows = untimed(await manager.get_messages())
                await manager.close()
                manager = SummarizingContextManager(store=store, summary_share=0.15)
                await manager.set_messages(rows)
            view = await manager.get_messages_for_request(BUDGET, provider=provider)
            text = "\n".join(str(row["content"]) for row in view)
            assert [one for one in standing if one not in text] == []
        await manager.close()

    asyncio.run(run())
