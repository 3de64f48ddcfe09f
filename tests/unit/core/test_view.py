"""Rows of a view that are not as they came: continuation ids, and calls that are still open."""

from __future__ import annotations

from context_summarize.core.cut import Cut
from context_summarize.core.log import Log
from context_summarize.core.view import view as view_of
from context_summarize.messages.reading import analyse
from tests.support.managed import Managed
from tests.support.rows import assistant, calls, hook, result, tool_session, user
from tests.support.views import untimed

BOTH = calls(("x", "n", {}), ("y", "n", {}))


async def test_continuation_ids_from_before_the_newest_compaction_are_dropped():
    """Else the provider restores the uncompacted history on its side; the rows stay, and ids from after it."""
    made = Managed(segment_tokens=64, keep_recent=4, prefetch=False)
    marks = {"openai:response_id": "r1", "openai:status": "completed"}
    await made.add([*tool_session(12), {**assistant("before"), "metadata": dict(marks)}])
    for budget, kept in ((100_000, marks), (900, {"openai:status": "completed"})):
        view = await made.view(budget)
        assert untimed(view[-1:]) == [{**assistant("before"), "metadata": kept}]
    after = await (await made.add([{**assistant("after"), "metadata": dict(marks)}])).view(900)
    assert untimed(after) == [*untimed(view), {**assistant("after"), "metadata": marks}]


async def test_an_open_call_is_at_the_end_with_the_results_so_far():
    """Hook rows in between are held back until it closes."""
    made = Managed(100_000)
    before, after = [user("a"), BOTH, result("x")], [result("y"), hook("h1"), hook("h2")]
    for rows, shown in (
        ([user("a"), BOTH, hook("h1"), result("x"), hook("h2")], before),
        ([result("y")], [*before, *after]),
    ):
        view = await (await made.add(rows)).view()
        assert [row["content"] for row in view] == [row["content"] for row in shown]


def test_an_open_group_is_shown_with_its_newest_result_though_a_thread_is_at_an_earlier_one():
    """A thread that looks at a compaction has found the group, and the host adds a result before it is shown."""
    log = Log(len)
    for row in (user("go"), BOTH):
        log.add(analyse(row))
    [earlier] = log.open_groups
    log.add(analyse(result("x", "found")))
    assert len(log.entries(earlier)) == 1
    assert "found" in str(view_of(log, Cut(), lambda _: None).rows(None))
