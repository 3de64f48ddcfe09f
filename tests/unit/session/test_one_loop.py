"""A manager belongs to one event loop: a call from another one is refused and changes nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.errors import WrongLoopError

ROW = {"role": "user", "content": "hello"}
CALLS: dict[str, Callable[[SummarizingContextManager], Awaitable[object]]] = {
    "add_message": lambda manager: manager.add_message(ROW),
    "set_messages": lambda manager: manager.set_messages([ROW]),
    "get_messages": lambda manager: manager.get_messages(),
    "get_messages_for_request": lambda manager: manager.get_messages_for_request(1_000),
    "get_token_count": lambda manager: manager.get_token_count(),
    "compact": lambda manager: manager.compact(),
    "clear": lambda manager: manager.clear(),
    "preview": lambda manager: manager.preview(),
}


async def _call(manager: SummarizingContextManager, name: str) -> None:
    await CALLS[name](manager)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_from_a_second_thread_names_both_and_changes_nothing(name):
    async def run() -> tuple[BaseException | None, list[dict[str, object]]]:
        manager = SummarizingContextManager()
        await manager.add_message({"role": "user", "content": "first"})
        seen: list[BaseException] = []

        def work() -> None:
            try:
                asyncio.run(_call(manager, name))
            except WrongLoopError as error:
                seen.append(error)

        thread = threading.Thread(target=work, name="worker")
        thread.start()
        await asyncio.to_thread(thread.join)
        await manager.add_message(ROW)  # the first loop goes on
        messages = await manager.get_messages()
        await manager.close()
        return (seen[0] if seen else None), messages

    error, messages = asyncio.run(run())

    assert isinstance(error, WrongLoopError)
    assert "'MainThread'" in str(error)
    assert "'worker'" in str(error)
    assert "run_coroutine_threadsafe" in str(error)
    assert [row["content"] for row in messages] == ["first", "hello"]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_after_the_first_loop_has_ended_says_how_to_go_on(name):
    manager = SummarizingContextManager()
    asyncio.run(manager.add_message(ROW))

    with pytest.raises(WrongLoopError, match=r"has ended .* set_messages"):
        asyncio.run(_call(manager, name))

    assert [row["content"] for row in manager.messages] == ["hello"]
