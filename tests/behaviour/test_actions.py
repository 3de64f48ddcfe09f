"""The row that tells what was done: after ten compactions, after a restart, and where there is no room for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


async def test_after_ten_compactions_files_failures_and_tests_are_told() -> None:
    made = manager(MemoryStore())
    view = await played(made, ScriptedProvider(then=summarise))
    row = actions(view)

    assert made.conversation.view.compactions >= 10
    assert row is not None
    assert measure(row, COUNT) <= 0.03 * WINDOW
    folded = [task for task in range(TASKS) if f'"src/part_{task}.py"' not in str(view)]
    shown = str(view)
    assert len(folded) > TASKS / 2
    assert sum(f"src/part_{task}.py" in shown for task in folded) >= 0.9 * len(folded)
    assert sum(f"`make part-{task}` → exit {task % 7 + 1}" in shown for task in folded) >= 0.8 * len(folded)
    assert all(f"pytest tests/area_{area}.py" in shown for area in range(3))


async def test_it_stands_between_the_summaries_and_the_rest() -> None:
    view = await played(manager(MemoryStore(), summary_role="user"), ScriptedProvider(then=summarise))
    row = actions(view)
    assert row is not None
    at = view.index(row)
    nodes = [place for place, other in enumerate(view) if "key" in (other.get("metadata") or {})]

    assert row["role"] == "user"
    assert nodes[-1] == at - 1
    assert all("key" not in (other.get("metadata") or {}) for other in view[at + 1 :])


async def test_a_restart_shows_the_same_row() -> None:
    store = MemoryStore()
    first = manager(store)
    view = await played(first, ScriptedProvider(then=summarise))
    second = manager(store)
    await second.set_messages(await first.get_messages())
    silent = ScriptedProvider(then=summarise)
    again = await second.get_messages_for_request(provider=silent)

    assert actions(again) == actions(view)
    assert silent.requests == []


async def test_without_a_share_there_is_none() -> None:
    view = await played(manager(MemoryStore(), action_share=0), ScriptedProvider(then=summarise))

    assert actions(view) is None


async def test_it_goes_first_where_a_view_must_fit() -> None:
    """The budget shrinks to what the rest of the view takes."""
    made = manager(MemoryStore())
    provider = ScriptedProvider(then=summarise)
    view = await played(made, provider)
    row = actions(view)
    assert row is not None
    size = sum(measure(other, COUNT) for other in view)
    smaller = await made.get_messages_for_request(token_budget=size - 5, provider=provider)

    assert actions(smaller) is None or measure(actions(smaller) or {}, COUNT) < measure(row, COUNT)
