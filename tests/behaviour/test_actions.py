"""The row that tells what was done: after ten compactions, after a restart, and where there is no room for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.session import summarise

COUNT = TokenCounter().count
TASKS = 24
WINDOW = 24_000


def _call(number: int, name: str, arguments: dict[str, Any], result: str) -> Iterator[JsonRow]:
    call_id = f"call-{number}"
    yield {"role": "assistant", "content": "", "tool_calls": [{"id": call_id, "tool": name, "arguments": arguments}]}
    yield {"role": "tool", "tool_call_id": call_id, "content": result}


def agent_session() -> Iterator[JsonRow]:
    """Tasks, each with an edit, a command that fails, a test run, and long listings between them."""
    listing = "\n".join(f"{line}: the quick brown fox jumps over the lazy dog" for line in range(200))
    for task in range(TASKS):
        yield {"role": "user", "content": f"Please mend part {task}."}
        for part in range(3):
            yield from _call(
                100 + 4 * task + part, "read_file", {"file_path": f"docs/page_{part}.md"}, f"{task} {listing}"
            )
        edit = {"file_path": f"src/part_{task}.py", "old_string": "a", "new_string": "b"}
        yield from _call(4 * task + 1, "edit_file", edit, "ok")
        fails = f'{{"stdout": "", "stderr": "no target", "returncode": {task % 7 + 1}}}'
        yield from _call(4 * task + 2, "bash", {"command": f"make part-{task}"}, fails)
        passed = f'{{"stdout": "{listing[:400]}", "returncode": 0}}\n{task} passed in 0.1s'
        yield from _call(4 * task + 3, "bash", {"command": f"pytest tests/area_{task % 3}.py"}, passed)
        yield {"role": "assistant", "content": f"Part {task} is done."}


def manager(store: MemoryStore, **settings: Any) -> SummarizingContextManager:
    return SummarizingContextManager(store=store, max_tokens=WINDOW, prefetch_threshold=None, **settings)


async def played(made: SummarizingContextManager, provider: ScriptedProvider) -> list[JsonRow]:
    for row in agent_session():
        if row["role"] == "assistant":
            await made.get_messages_for_request(provider=provider)
        await made.add_message(row)
    return await made.get_messages_for_request(provider=provider)


def actions(view: list[JsonRow]) -> JsonRow | None:
    return next((row for row in view if "actions" in (row.get("metadata") or {})), None)


@dataclass
class Lived:
    """A session with many compactions, and what it showed in the end."""

    view: list[JsonRow]
    smaller: list[JsonRow]
    """The view in a budget that the whole one does not fit."""
    compactions: int


@pytest.fixture(scope="module")
def lived() -> Lived:
    async def live() -> Lived:
        provider = ScriptedProvider(then=summarise)
        made = manager(MemoryStore(), summary_role="user")
        view = await played(made, provider)
        compactions = (await made.statistics()).boundaries
        size = sum(measure(row, COUNT) for row in view)
        smaller = await made.get_messages_for_request(token_budget=size - 5, provider=provider)
        await made.close()
        return Lived(view, smaller, compactions)

    return asyncio.run(live())


def test_after_ten_compactions_files_failures_and_tests_are_told(lived: Lived) -> None:
    row, shown = actions(lived.view), str(lived.view)
    assert lived.compactions >= 10
    assert row is not None
    assert measure(row, COUNT) <= 0.03 * WINDOW
    folded = [task for task in range(TASKS) if f'"src/part_{task}.py"' not in shown]
    assert len(folded) > TASKS / 2
    assert sum(f"src/part_{task}.py" in shown for task in folded) >= 0.9 * len(folded)
    assert sum(f"`make part-{task}` → exit {task % 7 + 1}" in shown for task in folded) >= 0.8 * len(folded)
    assert all(f"pytest tests/area_{area}.py" in shown for area in range(3))


def test_it_stands_between_the_summaries_and_the_rest(lived: Lived) -> None:
    row = actions(lived.view)
    assert row is not None
    at = lived.view.index(row)
    nodes = [place for place, other in enumerate(lived.view) if "key" in (other.get("metadata") or {})]
    assert row["role"] == "user"
    assert nodes[-1] == at - 1


def test_it_goes_first_where_a_view_must_fit(lived: Lived) -> None:
    """The budget shrinks to what the rest of the view takes."""
    row = actions(lived.view)
    assert row is not None
    left = actions(lived.smaller)
    assert left is None or measure(left, COUNT) < measure(row, COUNT)


async def test_a_restart_shows_the_same_row() -> None:
    store = MemoryStore()
    first = manager(store)
    view = await played(first, ScriptedProvider(then=summarise))
    second = manager(store)
    await second.set_messages(await first.get_messages())
    silent = ScriptedProvider(then=summarise)
    again = await second.get_messages_for_request(provider=silent)
    assert actions(again) == actions(view) is not None
    assert silent.requests == []


async def test_without_a_share_there_is_none() -> None:
    made = manager(MemoryStore(), action_share=0)
    await made.set_messages(agent_session())
    view = await made.get_messages_for_request(provider=ScriptedProvider(then=summarise))
    assert any("key" in (row.get("metadata") or {}) for row in view)
    assert actions(view) is None
