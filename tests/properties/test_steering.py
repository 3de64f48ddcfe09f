"""Edits, undo and pins over random histories: views keep the rules, pins stay whole, a resume shows the same view."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.core.nodes import leaves_of
from context_summarize.errors import SteeringError
from context_summarize.providers.offline import OfflineProvider
from context_summarize.stores.memory import MemoryStore
from context_summarize.tokens.counter import TokenCounter
from tests.properties.rules import Rows, check_fits, check_order, check_shape, view_tokens
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.recorder import Recorder

COUNT = TokenCounter().count
SMALL: dict[str, Any] = {
    "segment_tokens": 64, "summary_tokens": 32, "fan_in": 2, "prefetch_threshold": None, "keep_recent": 2,
    "target_usage": 0.2, "min_fold": 0.02, "compact_threshold": 0.5,
}  # fmt: skip
BUDGET = 1_500
slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


class Host(Recorder):
    """A coordinator with a session id."""

    session_id = "drawn"


def manager(store: MemoryStore, host: Recorder) -> SummarizingContextManager:
    return SummarizingContextManager(host, store=store, **SMALL)


def kept(rows: Rows) -> Rows:
    """The rows that hosts save."""
    return [
        row
        for row in rows
        if row["role"] not in ("system", "developer")
        and not row.get("ephemeral")
        and (row.get("metadata") or {}).get("source") != "hook"
    ]


@given(rows=histories(40), pins=st.lists(st.integers(1, 60), max_size=4), cuts=st.integers(1, 12))
@slow_ok
def test_pinned_rows_stand_whole_in_every_view_that_needs_no_shortening(rows: Rows, pins: list[int], cuts: int) -> None:
    """Rules 2, 6 and 7 with pins; a group that is pinned is in the view of each later compaction, row for row."""

    async def run() -> None:
        host, provider = Host(), OfflineProvider(COUNT)
        made = manager(MemoryStore(), host)
        for at, row in enumerate(rows):
            await made.add_message(copy.deepcopy(row))
            if at % cuts:
                continue
            if at == len(rows) // 2:
                for number in pins:
                    try:
                        await made.pin(number)
                    except SteeringError:
                        continue
            boundaries = host.boundaries
            view = await made.get_messages_for_request(BUDGET, provider)
            check_shape(view)
            check_order(view, rows[: at + 1])
            check_fits(view, BUDGET, COUNT)
            chat = made.conversation
            if host.boundaries > boundaries:
                wanted = {ordinal for ordinal in chat.steered.pins if ordinal < chat.view.frontier}
                assert wanted == set(chat.view.pinned)
                if host.of("context:compaction")[-1]["strategy_level"] < 4:
                    groups = [chat.history.rendered_group(ordinal) for ordinal in wanted]
                    assert not {row for g in groups for row in range(g.start, g.end)} & set(chat.view.shortened)
        await made.close()

    asyncio.run(run())


@given(rows=histories(40), again=st.booleans())
@slow_ok
def test_an_undo_and_then_a_resume_show_the_same_view(rows: Rows, again: bool) -> None:
    """Also where it was the second one; nobody is asked."""
    rows = kept(rows)

    async def run() -> None:
        store, host, provider = MemoryStore(), Host(), OfflineProvider(COUNT)
        made = manager(store, host)
        for row in rows:
            await made.add_message(copy.deepcopy(row))
            await made.get_messages_for_request(BUDGET, provider)
        try:
            await made.undo()
            if again:
                await made.undo()
        except SteeringError:
            pass
        state = made.conversation.steered.held_at
        view = await made.get_messages_for_request(BUDGET, provider)
        check_shape(view)
        assert state is None or view_tokens(view, COUNT) <= BUDGET
        keys = [item.node.key for item in made.conversation.view.nodes]
        await made.close()
        calls = host.count("context-summarize:summary")
        other = manager(store, host)
        await other.set_messages(copy.deepcopy(rows))
        resumed = await other.get_messages_for_request(BUDGET, provider)
        if state is not None:
            assert other.conversation.steered.held_at == state
            assert [item.node.key for item in other.conversation.view.nodes] == keys
            assert resumed == view
            assert host.count("context-summarize:summary") == calls
        await other.close()

    asyncio.run(run())


@given(rows=histories(40), data=st.data(), restarted=st.booleans(), how=st.sampled_from(["change", "insert", "drop"]))
@slow_ok
def test_an_edit_makes_at_most_one_segment_anew_and_asks_nobody(
    rows: Rows, data: st.DataObject, restarted: bool, how: str
) -> None:
    """The nodes still tile what is summarised, and every segment but one is found again; the rules hold."""
    rows = kept(rows)

    async def run() -> None:
        store, host, provider = MemoryStore(), Host(), OfflineProvider(COUNT)
        made = manager(store, host)
        for row in rows:
            await made.add_message(copy.deepcopy(row))
            await made.get_messages_for_request(BUDGET, provider)
        users = [at for at, row in enumerate(rows) if row["role"] == "user" and isinstance(row.get("content"), str)]
        if not users or not made.conversation.view.nodes:
            await made.close()
            return
        before = [leaf.key for leaf in leaves_of(item.node for item in made.conversation.view.nodes)]
        at, edited = data.draw(st.sampled_from(users)), copy.deepcopy(rows)
        if how == "drop":
            del edited[at]
        elif how == "insert":
            edited.insert(at, {"role": "user", "content": "put in by the host"})
        else:
            edited[at]["content"] = "changed by the host"
        calls = host.count("context-summarize:summary")
        if restarted:
            await made.close()
            made = manager(store, host)
        await made.set_messages(copy.deepcopy(edited))
        await made.get_token_count()
        assert host.count("context-summarize:summary") == calls
        chat = made.conversation
        at_group = 0
        for item in chat.view.nodes:
            assert item.node.first_group == at_group
            at_group = item.node.end_group
        assert at_group == chat.view.frontier
        now = [leaf.key for leaf in leaves_of(item.node for item in chat.view.nodes)]
        lost = set(before) - set(now)
        if len(set(before)) == len(before) and at_group:
            assert len(lost) <= 1, (before, now)
        view = await made.get_messages_for_request(BUDGET, provider)
        check_shape(view)
        check_order(view, edited)
        check_fits(view, BUDGET, COUNT)
        await made.close()

    asyncio.run(run())
