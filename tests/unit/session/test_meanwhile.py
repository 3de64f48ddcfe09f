"""What others do while a request or a replaced history is at work."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.support.gated import settle
from tests.support.managed import Managed
from tests.support.rows import tool_session, user
from tests.support.virtual import Threads, run_virtually


def session() -> Managed:
    return Managed(20_000, segment_tokens=512, prefetch=False, keep_recent=4)


@pytest.mark.parametrize(("prompts", "most"), [(["You are kind."], 1), ([None, "You are kind."], 4)])
async def test_of_several_requests_at_once_one_compacts(prompts, most):
    """Nor do requests that hear of different prompts need more: each hides the stored prompt, or shows it."""
    made, heard = session(), itertools.cycle(prompts)

    async def prompt() -> Any:
        return next(heard)

    await made.take([{"role": "system", "content": "stored"}, *tool_session(40, size=4_000)])
    await made.manager.set_system_prompt_factory(prompt)
    await asyncio.gather(*(made.view() for _ in range(5)))
    assert 0 < made.host.compactions <= most
    await made.manager.close()


def test_what_a_user_pins_while_the_host_replaces_the_history_stays_pinned():
    threads = Threads()

    async def pin_meanwhile() -> None:
        made, rows = session(), tool_session(21)
        await (await made.take(rows)).view()
        threads.hang(1)
        replacing = asyncio.create_task(made.take([*rows[:-1], user("changed by the host")]))
        await settle()
        pinned = await made.manager.pin(2)
        assert not replacing.done()
        threads.go_on()
        await replacing
        assert pinned == await made.manager.pin([])
        await made.manager.close()

    run_virtually(pin_meanwhile(), threads)
