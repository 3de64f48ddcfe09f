"""Resume is free: a session that has ended goes on from its last view, and asks for no text that is there."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from tests.properties.rules import Rows, rendered
from tests.properties.strategies import histories
from tests.properties.test_steering import BUDGET, SMALL, slow_ok
from tests.support.gated import Shortening
from tests.support.kept import KeptStore
from tests.support.recorder import Recorder
from tests.support.rows import calls, feed, result, tool_session, user
from tests.support.views import nodes, size


async def kill() -> None:
    """End all that is under way, as the end of a process does: nothing is closed."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@given(drawn=histories(40), prefetch=st.booleans(), steps=st.none() | st.integers(0, 60))
@slow_ok
def test_a_session_goes_on_from_its_last_view_and_asks_for_no_text_that_is_there(
    drawn: Rows, prefetch: bool, steps: int | None
) -> None:
    """Killed after so many steps of a request, or closed after it; what it shows is that view, or a next compaction."""
    rows = rendered([*tool_session(6, size=100), *drawn])
    settings: dict[str, Any] = {**SMALL, "prefetch": prefetch}

    async def run() -> None:
        store = KeptStore()
        first = SummarizingContextManager(Recorder(session_id="drawn"), store=store, **settings)
        view: Rows = []
        for row in rows[:-1]:
            await first.add_message(copy.deepcopy(row))
            view = await first.get_messages_for_request(BUDGET, Shortening())
        await first.add_message(copy.deepcopy(rows[-1]))
        records = dict(store.records)
        last = asyncio.create_task(first.get_messages_for_request(BUDGET, Shortening()))
        if steps is None:
            view = await last
            await first.close()
            records = dict(store.records)
        else:
            for _ in range(steps):
                await asyncio.sleep(0)
            await kill()
        is_next = store.records != records  # the request was killed after a compaction
        paid = [summary.key for summary in store.summaries]
        again = Recorder(session_id="drawn")
        second = SummarizingContextManager(again, store=store, **settings)
        await second.set_messages(copy.deepcopy(rows))
        shown = await second.get_messages_for_request(BUDGET, Shortening())
        await second.close()
        assert not {*paid} & {summary.key for summary in store.summaries[len(paid) :]}
        if not again.compactions and not is_next:
            assert nodes(shown) == nodes(view)
            assert steps is not None or shown == view

    asyncio.run(run())


async def test_a_session_that_is_rewound_keeps_its_newest_rows_verbatim() -> None:
    """It takes the farthest compaction that leaves `keep_recent` of them; nobody is asked."""
    store, rows = KeptStore(), tool_session(60, size=100)
    first, host = SummarizingContextManager(store=store, **{**SMALL, "keep_recent": 6}), Recorder()
    for row in rows:
        await first.add_message(row)
        await first.get_messages_for_request(BUDGET, Shortening())
    await first.close()
    ends = []
    for end in range(60, len(rows), 7):
        provider = Shortening()
        second = SummarizingContextManager(host, store=store, **{**SMALL, "keep_recent": 6, "auto_compact": False})
        await second.set_messages(rows[:end])
        view = await second.get_messages_for_request(BUDGET, provider)
        ends.append(nodes(view)[-1]["metadata"]["messages"][1])
        assert provider.calls == 0
        assert host.compactions == 0
        assert end - ends[-1] >= 6
        await second.close()
    assert ends == sorted(ends)
    assert len(set(ends)) > 3


async def shown_after_a_restart(first: SummarizingContextManager, store: KeptStore) -> Rows:
    """The view that the session's next process shows of the same rows."""
    rows = await first.get_messages()
    await first.close()
    second = SummarizingContextManager(Recorder(session_id="drawn"), store=store, **SMALL)
    await second.set_messages(rows)
    view = await second.get_messages_for_request(10**6, Shortening())
    await second.close()
    return view


async def test_a_result_that_was_shortened_beside_a_call_still_open_stays_so_after_a_restart() -> None:
    """Also once its group has closed, and its row alone if the host has changed another."""
    for later in ([], [result("c1", "found")]):
        store = KeptStore()
        first = SummarizingContextManager(Recorder(session_id="drawn"), store=store, **SMALL)
        rows = [
            user("Read both."),
            calls(("c0", "read", {}), ("c1", "read", {})),
            result("c0", "a line of it " * 2_000),
        ]
        await first.set_messages(rows)
        view = await first.get_messages_for_request(BUDGET, Shortening())
        assert size(view) <= BUDGET
        await feed(first, later)
        assert (await shown_after_a_restart(first, store))[: len(view)] == view


async def test_a_session_that_was_rewound_and_goes_on_shows_the_same_view_after_a_restart() -> None:
    """A compaction that left too few rows verbatim when it was rewound is not taken up later."""
    store = KeptStore()
    first, rows = (
        SummarizingContextManager(Recorder(session_id="drawn"), store=store, **SMALL),
        tool_session(12, size=100),
    )
    await first.set_messages(rows)
    await first.get_messages_for_request(BUDGET, Shortening())
    await first.compact()
    await first.set_messages(rows[:-3])
    await first.get_messages_for_request(10**6, Shortening())
    await feed(first, tool_session(2, start=50))
    view = await first.get_messages_for_request(10**6, Shortening())
    assert await shown_after_a_restart(first, store) == view
