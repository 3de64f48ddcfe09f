"""Resume is free: a session that has ended goes on from its last view, and asks for no text that is there."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.rules import rendered
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.gated import Shortening
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import tool_session
from tests.support.views import nodes

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False, "keep_recent": 2, "compact_threshold": 0.5}
BUDGET = 1_500


def session(**given: Any) -> Managed:
    return Managed(BUDGET, provider=Shortening, **{"host": Recorder(session_id="drawn"), **SMALL, **given})


async def kill() -> None:
    """End all that is under way, as the end of a process does: nothing is closed."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@given(drawn=histories(40), prefetch=st.booleans(), steps=st.none() | st.integers(0, 60))
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
async def test_a_session_goes_on_from_its_last_view_and_asks_for_no_text_that_is_there(drawn, prefetch, steps):
    """Killed after so many steps of a request, or closed after it; what it shows is that view, or a next compaction."""
    rows = rendered([*tool_session(6, size=100), *drawn])
    first = session(prefetch=prefetch)
    store, view = first.store, list[Any]()
    for row in rows[:-1]:
        await first.add([copy.deepcopy(row)])
        view = await first.view()
    await first.add([copy.deepcopy(rows[-1])])
    records = dict(store.records)
    last = asyncio.create_task(first.view())
    if steps is None:
        view = await last
        await first.manager.close()
        records = dict(store.records)
    else:
        for _ in range(steps):
            await asyncio.sleep(0)
        await kill()
    is_next = store.records != records  # the request was killed after a compaction
    paid = [summary.key for summary in store.summaries]
    second = await session(store=store, prefetch=prefetch).take(copy.deepcopy(rows))
    shown = await second.view()
    await second.manager.close()
    assert not {*paid} & {summary.key for summary in store.summaries[len(paid) :]}
    if not second.host.compactions and not is_next:
        assert nodes(shown) == nodes(view)
        assert steps is not None or shown == view


async def test_a_session_that_is_rewound_keeps_its_newest_rows_verbatim():
    """It takes the farthest compaction that leaves `keep_recent` of them; nobody is asked."""
    first, rows = session(host=Recorder(), keep_recent=6), tool_session(60, size=100)
    for row in rows:
        await (await first.add([row])).view()
    await first.manager.close()
    ends = []
    for end in range(70, len(rows), 7):
        second = session(host=Recorder(), store=first.store, keep_recent=6, auto_compact=False)
        view = await (await second.take(rows[:end])).view()
        ends.append(nodes(view)[-1]["metadata"]["messages"][1])
        assert second.provider.calls == 0
        assert second.host.compactions == 0
        assert end - ends[-1] >= 6
        await second.manager.close()
    assert ends == sorted(ends)
    assert len(set(ends)) > 3


async def test_a_session_that_was_rewound_and_goes_on_shows_the_same_view_after_a_restart():
    """A compaction that left too few rows verbatim when it was rewound is not taken up later."""
    rows = tool_session(12, size=100)
    first = await session().take(rows)
    await first.view()
    await first.manager.compact()
    await (await first.take(rows[:-3])).view(10**6)
    view = await (await first.add(tool_session(2, start=50))).view(10**6)
    assert await (await first.again()).view(10**6) == view


async def test_a_fallback_that_a_request_shows_stays_after_a_restart():
    """Although the store has the model's text by then."""
    given = {"prefetch": False, "keep_recent": 4, "compact_threshold": 0.5}
    made = await Managed(6_000, provider=Shortening, host=Recorder(session_id="one"), **given).add(tool_session(12))
    await made.view()
    await made.manager.compact("the orders")
    made = await made.again()
    await made.manager.undo()
    await made.manager.compact("the orders")
    await (await made.add(tool_session(12, start=12))).view()
    await made.manager.compact("the orders")
    await made.manager.undo()
    view = await made.view()
    assert (await made.manager.statistics()).fallbacks
    again = await made.again()
    assert await again.view() == view
    assert again.provider.calls == 0
