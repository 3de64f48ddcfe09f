"""Rows of any size and imports of any length: few calls, no secret, and others have their turn meanwhile."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.effort import crossed, full
from tests.support.gated import answer
from tests.support.managed import Managed
from tests.support.rows import call, result, tool_session, user

SETTINGS: dict[str, Any] = {"segment_tokens": 512, "prefetch": False, "keep_recent": 2}
LARGE = "".join(f"Order {at} of the log was found and is on its way.\n" for at in range(12_000))


@pytest.mark.parametrize(("window", "is_typed"), crossed([16_000, 4_000, 1_200], [True, False]))
async def test_a_row_of_any_size_costs_at_most_ten_calls_and_no_secret_is_shown_where_it_is_cut(window, is_typed):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    text = f"Log of the token {secret} in use.\n" * full(6_000, 3_000)
    made = Managed(8_000, provider=lambda: ScriptedProvider(then=answer, context_window=window), **SETTINGS)
    large = [user(text)] if is_typed else [call("c"), result("c", text)]
    await (await made.take([user("Go."), *large, *tool_session(1)])).view()
    await made.compacted()
    await made.manager.close()
    assert made.provider.calls <= 10
    shown = "".join(str(request.messages[1].content) for request in made.provider.requests)
    assert "left out …]" in shown
    assert "[redacted:" in shown
    assert secret[:12] not in shown
    assert secret[-12:] not in shown


async def test_no_text_of_a_session_outlives_it():
    """Hosts have many sessions in one process: each gives back what its texts took, its words and its keys."""

    async def life(seed: int, rows: int) -> None:
        made = Managed(8_000, **SETTINGS)
        for at in range(rows):
            words = (f"Never drop the entry {seed}-{at}-{line} of file_{seed}{at}{line}.log." for line in range(600))
            text = " ".join(words)
            keys = {f"key_{seed}_{line}_{at}" * 20: "x" for line in range(50)}
            await (await made.add([user(text), call(f"c{at}", **keys), result(f"c{at}", text)])).view()
        await made.manager.compact()
        await made.manager.close()

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


async def test_a_large_row_is_counted_beside_the_loop_and_stays_in_its_place():
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
