"""What comes while a compaction or its record is under way: requests are served, nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest

from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider, broken_pairs
from tests.support.gated import Gated, answer, settle
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import tool_session, user
from tests.support.views import size, untimed
from tests.support.virtual import run_virtually

SMALL: dict[str, Any] = {"keep_recent": 4, "prefetch": False, "segment_tokens": 64}


class HeldStore(MemoryStore):
    """A store whose next record is held back."""

    def __init__(self) -> None:
        super().__init__()
        self.go: asyncio.Event | None = None
        self.held = asyncio.Event()

    def hold(self) -> asyncio.Event:
        """What lets the record go."""
        self.go = asyncio.Event()
        return self.go

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        go, self.go = self.go, None
        if go is not None:
            self.held.set()
            await go.wait()
        await super().put_record(hash_, record)


async def test_a_compaction_on_demand_ends_though_rows_keep_coming():
    """What comes while it waits is none of its rows: it asks for no summary twice, a little longer each time."""
    asked = 0

    async def then(request: ChatRequest) -> str:
        nonlocal asked
        asked += 1
        await made.add(tool_session(1 if asked < 40 else 0, start=100 + asked))
        return answer(request)

    made = Managed(1_000_000, provider=lambda: ScriptedProvider(then=then), **SMALL | {"segment_tokens": 256})
    await (await made.take(tool_session(12))).view()
    assert (await made.manager.preview()).calls == 6
    await made.manager.compact()
    assert made.provider.calls == 6


async def test_of_two_records_the_newer_is_kept_though_the_older_takes_longer():
    made = await Managed(20_000, host=Recorder(session_id="a session"), store=HeldStore(), **SMALL).take(
        tool_session(12)
    )
    await made.view()
    go = made.store.hold()
    first, second = asyncio.create_task(made.manager.pin(1)), asyncio.create_task(made.manager.pin(5))
    await settle()
    go.set()
    await asyncio.gather(first, second)
    assert await (await made.again()).manager.pin(9) == (1, 5, 9)


async def test_of_two_replacements_the_later_wins_and_rows_added_after_both_stay():
    """Also where the earlier one is done first, because the later one has more rows to take in."""
    made, rows = Managed(), tool_session(900, start=5_000)
    await made.take(tool_session(100))
    first = asyncio.create_task(made.take(tool_session(200, start=1_000)))
    second = asyncio.create_task(made.take(rows))
    await asyncio.sleep(0)
    await made.add([user("One more.")])
    await asyncio.gather(first, second)
    assert await made.rows() == [*rows, user("One more.")]
    await asyncio.gather(made.take(tool_session(200)), made.manager.clear())
    assert await made.rows() == []


ROWS = tool_session(12)
SOON = 10
"""Seconds after which a wait for the summaries would be seen."""


async def begun(budget: int, **settings: Any) -> tuple[Managed, asyncio.Task[int]]:
    """A session whose `compact()` waits for a provider that does not answer yet."""
    session = await Managed(budget, provider=Gated, wait_seconds=0, **SMALL, **settings).take(ROWS)
    await session.view()
    compacting = asyncio.create_task(session.manager.compact("the orders"))
    await session.provider.asked.wait()
    return session, compacting


async def request(session: Managed) -> list[JsonRow]:
    """Its rows; it must not wait for the provider."""
    return await asyncio.wait_for(session.view(), SOON)


async def ended(session: Managed, compacting: asyncio.Task[int], rows: list[JsonRow]) -> list[JsonRow]:
    """The rows of the next request, once the provider has answered and `compact()` has ended."""
    session.provider.go.set()
    assert await compacting >= 0
    view = await request(session)
    assert await session.rows() == rows
    assert broken_pairs(view) == []
    assert size(view) <= (session.budget or 0)
    assert session.host.count("context:pre_compact") == session.host.count("context:post_compact")
    await session.manager.close()
    return view


async def test_a_request_beside_compact_is_served_as_it_is_where_it_fits():
    """It waits at most `wait_seconds`; the compaction is made all the same, of what was said before and since."""
    session, compacting = await begun(100_000)
    rows = [*ROWS, user("one more")]
    view = await request(await session.add(rows[-1:]))
    assert untimed(view) == rows
    assert not compacting.done()
    after = await ended(session, compacting, rows)
    assert size(after) < size(view)
    assert after[-1]["content"] == "one more"
    assert session.host.compactions == 1


async def test_a_request_beside_compact_that_does_not_fit_shows_fallbacks():
    budget, more = size(ROWS) + 200, tool_session(8, start=100)
    session, compacting = await begun(budget, auto_compact=False)
    view = await request(await session.add(more))
    assert size(view) <= budget
    assert broken_pairs(view) == []
    assert not compacting.done()
    assert any(FALLBACK_LINE in str(row["content"]) for row in view)
    assert size(await ended(session, compacting, [*ROWS, *more])) <= size(view)


def test_two_requests_at_once_wait_no_longer_than_one():
    """Of a provider that never answers, beside `compact()`: each is answered after `wait_seconds`, and fits."""

    async def waits() -> list[float]:
        loop = asyncio.get_running_loop()
        session = await Managed(900, provider=Gated, clock=loop.time, wait_seconds=5, **SMALL).take(ROWS)
        compacting = asyncio.create_task(session.manager.compact())
        await asyncio.sleep(0)

        async def waited() -> float:
            began = loop.time()
            assert size(await session.view()) <= 900
            return loop.time() - began

        found = list(await asyncio.gather(waited(), waited(), waited()))
        compacting.cancel()
        await session.manager.close()
        return found

    assert run_virtually(waits()) == pytest.approx([5, 5, 5], abs=0.2)
