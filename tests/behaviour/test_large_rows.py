"""Rows of any size and imports of any length: few calls, no secret, and others have their turn meanwhile."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from tests.support.gated import answer
from tests.support.rows import call, calls, result, tool_session, user
from tests.support.views import untimed

SETTINGS: dict[str, Any] = {"segment_tokens": 512, "prefetch": False, "keep_recent": 2}
LARGE = "".join(f"Order {at} of the log was found and is on its way.\n" for at in range(12_000))
"""Some three hundred segments."""
AFTER = tool_session(6)


async def compacted(rows: list[dict[str, Any]], window: int) -> tuple[ScriptedProvider, list[dict[str, Any]]]:
    """The provider and the last view of a session with these rows, after `compact()`."""
    provider = ScriptedProvider(then=answer, context_window=window)
    manager = SummarizingContextManager(**SETTINGS)
    await manager.set_messages([user("Go."), *rows, *AFTER])
    await manager.get_messages_for_request(token_budget=8_000, provider=provider)
    await manager.compact()
    view = await manager.get_messages_for_request(token_budget=8_000, provider=provider)
    await manager.close()
    return provider, view


@pytest.mark.parametrize("window", [16_000, 4_000, 1_200])
@pytest.mark.parametrize("rows", [[user(LARGE)], [call("c"), result("c", LARGE)]], ids=["typed", "read"])
async def test_a_row_of_any_size_costs_at_most_ten_calls(rows: list[dict[str, Any]], window: int) -> None:
    """The summariser is told how large it was."""
    provider, _ = await compacted(rows, window)
    without, _ = await compacted([], window)
    assert provider.calls - without.calls <= 10
    asked = [str(request.messages[1].content) for request in provider.requests]
    assert any("characters left out …]" in text for text in asked)


async def test_no_secret_is_shown_where_a_large_row_is_cut() -> None:
    """Half a secret is no longer known for one."""
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    provider, _ = await compacted([user(f"Log of the token {secret} in use.\n" * 9_000)], 16_000)
    asked = "".join(str(request.messages[1].content) for request in provider.requests)
    assert "[redacted:" in asked
    assert secret[:12] not in asked
    assert secret[-12:] not in asked


async def test_no_text_of_a_session_outlives_it() -> None:
    """Hosts have many sessions in one process: each gives back what its texts took, its words and its keys."""

    async def life(seed: int, rows: int) -> None:
        manager, provider = SummarizingContextManager(**SETTINGS), ScriptedProvider(then=answer)
        for at in range(rows):
            words = (f"Never drop the entry {seed}-{at}-{line} of file_{seed}{at}{line}.log." for line in range(600))
            text = " ".join(words)
            await manager.add_message(user(text))
            await manager.add_message(call(f"c{at}", **{f"key_{seed}_{line}_{at}" * 20: "x" for line in range(50)}))
            await manager.add_message(result(f"c{at}", text))
            await manager.get_messages_for_request(token_budget=8_000, provider=provider)
        await manager.compact()
        await manager.close()

    await life(1, 1)
    gc.collect()
    tracemalloc.start()
    try:
        await life(2, 2)
        await asyncio.get_running_loop().shutdown_default_executor()  # a thread lets go of its work after its result
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 30_000
    finally:
        tracemalloc.stop()


class TestBeside:
    async def test_a_large_row_is_counted_beside_the_loop_and_stays_in_its_place(self) -> None:
        """One who adds meanwhile comes after it, and a cancelled caller loses nothing."""
        manager = SummarizingContextManager(**SETTINGS)
        await manager.get_token_count()
        await manager.add_message(user("Go."))
        adding = asyncio.create_task(manager.add_message(user(LARGE)))
        await asyncio.sleep(0)
        assert not adding.done()
        await manager.add_message(user("Later."))
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert [row["content"] for row in manager.messages] == ["Go.", LARGE, "Later."]
        assert await manager.get_token_count() > 100_000

    async def test_a_row_that_is_added_during_an_import_follows(self) -> None:
        """Others have their turn meanwhile."""
        manager = SummarizingContextManager(**SETTINGS)
        rows = [user(f"Row {at}.") for at in range(1_500)]
        taking = asyncio.create_task(manager.set_messages(rows))
        turns = 0
        while not taking.done():
            turns += 1
            if turns == 5:
                await manager.add_message(user("Later."))
            await asyncio.sleep(0)
        assert turns > 5
        assert untimed(manager.messages) == [*rows, user("Later.")]

    async def test_many_long_results_are_shortened_beside_the_loop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A plan needs their sizes."""
        on_loop, count, loop = 0, TokenCounter.count, threading.current_thread()

        def watched(self: TokenCounter, text: str) -> int:
            nonlocal on_loop
            on_loop += len(text) * (threading.current_thread() is loop)
            return count(self, text)

        monkeypatch.setattr(TokenCounter, "count", watched)
        manager = SummarizingContextManager(prefetch=False)
        await manager.set_messages([user("Go."), *tool_session(200, size=24_000)])
        on_loop = 0
        await manager.get_messages_for_request(200_000, ScriptedProvider(then=answer))
        assert on_loop < 200_000
        await manager.close()


async def test_a_compaction_lets_go_of_what_its_view_does_not_show() -> None:
    """Each plan shortens the rows of a call with many results to another length, until the next compaction."""
    manager, provider, count = SummarizingContextManager(**SETTINGS), ScriptedProvider(then=answer), 60
    await manager.add_message(user("Go."))
    await manager.add_message(calls(*((f"c{at}", "read", {}) for at in range(count))))
    for at in range(count):
        await manager.add_message(result(f"c{at}", f"{at}: " + "the line of a file " * 100))
        await manager.get_messages_for_request(6_000, provider)
    assert 0 < len(manager.conversation.log.shortened) <= 2 * count
