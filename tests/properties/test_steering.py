"""Edits, undo and pins over random histories: views keep the rules, pins stay whole, a resume shows the same view."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.testing import MemoryStore
from tests.properties.rules import Rows, check_fits, check_order, check_shape, check_tiles, saved
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.gated import Shortening, questions
from tests.support.recorder import Recorder
from tests.support.rows import tool_session
from tests.support.views import size

SMALL: dict[str, Any] = {
    "segment_tokens": 64, "prefetch": False, "keep_recent": 2,
    "compact_threshold": 0.5,
}  # fmt: skip
BUDGET = 1_500
slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


class Host(Recorder):
    """A coordinator with a session id."""

    session_id = "drawn"


def manager(store: MemoryStore, host: Recorder) -> SummarizingContextManager:
    return SummarizingContextManager(host, store=store, **SMALL)


@given(drawn=histories(20), pins=st.lists(st.integers(1, 24), min_size=1, max_size=4), cuts=st.integers(1, 6))
@slow_ok
def test_pinned_rows_stand_whole_unless_a_view_must_be_shortened(drawn: Rows, pins: list[int], cuts: int) -> None:
    """Rules 2, 6 and 7 with pins; what is pinned is in the view of each later compaction, word for word."""
    rows = [*tool_session(8, size=100), *drawn, *tool_session(8, size=100, start=50)]

    async def run() -> None:
        host, provider = Host(), Shortening()
        made = manager(MemoryStore(), host)
        pinned: tuple[int, ...] = ()
        for at, row in enumerate(rows):
            await made.add_message(copy.deepcopy(row))
            if at % cuts:
                continue
            if not pinned and at >= 24:
                for number in pins:
                    try:
                        pinned = await made.pin(number)
                    except SteeringError:
                        continue
            compactions = host.compactions
            view = await made.get_messages_for_request(BUDGET, provider)
            check_shape(view)
            check_tiles(view)
            check_order(view, rows[: at + 1])
            check_fits(view, BUDGET)
            if host.compactions > compactions and host.of("context:compaction")[-1]["strategy_level"] < 4:
                messages = [row["content"] for row in saved(rows[: at + 1])]
                shown = [row["content"] for row in view]
                said = [messages[number - 1] for number in pinned]
                assert [text for text in said if isinstance(text, str) and text not in shown] == []
        await made.close()

    asyncio.run(run())


@given(rows=histories(40), again=st.booleans())
@slow_ok
def test_an_undo_and_then_a_resume_show_the_same_view(rows: Rows, again: bool) -> None:
    """Also where it was the second one; nobody is asked."""
    rows = saved(rows)

    async def run() -> None:
        store, host, provider = MemoryStore(), Host(), Shortening()
        made = manager(store, host)
        for row in rows:
            await made.add_message(copy.deepcopy(row))
            await made.get_messages_for_request(BUDGET, provider)
        undone = False
        try:
            for _ in range(2 if again else 1):
                await made.undo()
                undone = True
        except SteeringError:
            pass
        view = await made.get_messages_for_request(BUDGET, provider)
        check_shape(view)
        await made.close()
        if undone:
            assert size(view) <= BUDGET
            calls = provider.calls
            other = manager(store, host)
            await other.set_messages(copy.deepcopy(rows))
            assert await other.get_messages_for_request(BUDGET, provider) == view
            assert provider.calls == calls
            await other.close()

    asyncio.run(run())


@given(rows=histories(40), data=st.data(), restarted=st.booleans(), how=st.sampled_from(["change", "insert", "drop"]))
@slow_ok
def test_after_an_edit_the_rules_hold_and_no_text_is_asked_for_twice(
    rows: Rows, data: st.DataObject, restarted: bool, how: str
) -> None:
    """A status line asks nobody; what the store has, for whatever place, is not asked for again."""
    rows = saved(rows)

    async def run() -> None:
        store, host, provider = MemoryStore(), Host(), Shortening()
        made = manager(store, host)
        for row in rows:
            await made.add_message(copy.deepcopy(row))
            await made.get_messages_for_request(BUDGET, provider)
        users = [at for at, row in enumerate(rows) if row["role"] == "user" and isinstance(row.get("content"), str)]
        if not users:
            await made.close()
            return
        at, edited = data.draw(st.sampled_from(users)), copy.deepcopy(rows)
        if how == "drop":
            del edited[at]
        elif how == "insert":
            edited.insert(at, {"role": "user", "content": "put in by the host"})
        else:
            edited[at]["content"] = "changed by the host"
        calls = provider.calls
        if restarted:
            await made.close()
            made = manager(store, host)
        await made.set_messages(copy.deepcopy(edited))
        await made.get_token_count()
        assert provider.calls == calls
        view = await made.get_messages_for_request(BUDGET, provider)
        check_shape(view)
        check_tiles(view)
        check_order(view, edited)
        check_fits(view, BUDGET)
        asked = questions(provider)
        assert len(set(asked)) == len(asked)
        await made.close()

    asyncio.run(run())
