"""What a snapshot tells of a session: the tree of summaries, their sources, and where each view row comes from."""

from __future__ import annotations

from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import content_text
from context_summarize.testing import ScriptedProvider, assistant, call, hook, result, tool_session, user
from tests.support.snapshot import Snapshot, SummaryNode, ViewOrigin, snapshot
from tests.support.views import notes


async def snapshot_of(
    rows: list[JsonRow], then: Any = "Goal: done.", **settings: Any
) -> tuple[list[JsonRow], Snapshot]:
    """The last view of a session, and the snapshot at its end."""
    provider = ScriptedProvider(context_window=8_000, max_output_tokens=1_000, then=then)
    manager = SummarizingContextManager(**settings)
    view: list[JsonRow] = []
    for row in rows:
        if row["role"] == "assistant":
            view = await manager.get_messages_for_request(provider=provider)
            await manager.settle()
        await manager.add_message(row)
    seen = await snapshot(manager, view)
    await manager.close()
    return view, seen


def leaves(node: SummaryNode) -> list[SummaryNode]:
    return [leaf for child in node.children for leaf in leaves(child)] or [node]


async def test_merged_summaries_keep_the_texts_of_those_they_were_joined_from():
    texts = iter(f"Goal: text {number}." for number in range(1_000))

    _, seen = await snapshot_of(tool_session(80, size=800), lambda request: next(texts), summary_share=0.12)

    merged = [node for node in seen.nodes if node.children]
    assert merged
    assert all(leaf.level == 0 and leaf.summary is not None for node in seen.nodes for leaf in leaves(node))
    for node in merged:
        assert (node.first, node.last) == (node.children[0].first, node.children[-1].last)
        assert node.summary is not None
        assert node.summary.text not in {child.summary and child.summary.text for child in node.children}


async def test_the_messages_of_a_tree_are_those_of_the_history_whole_and_in_order():
    """Hook and system rows are no messages: they have no number and stand in no summary."""
    session = tool_session(60, size=800)
    rows = [{"role": "system", "content": "be kind"}, *session[:2], hook("a reminder"), *session[2:]]

    view, seen = await snapshot_of(rows)

    assert [message.number for message in seen.messages] == list(range(1, seen.nodes[-1].last + 1))
    for message, row in zip(seen.messages, session, strict=False):
        assert message.role == row["role"]
        if row["role"] != "assistant":
            assert message.text == content_text(row["content"])
    assert view[0] == {"role": "system", "content": "be kind"}


async def test_pins_and_verbatim_rows_are_found_again_and_summaries_are_named_by_key():
    """Equal rows are told apart by their order."""
    rows = [{"role": "system", "content": "be kind"}]
    for turn in range(60):
        rows += [user("go on"), call(f"c{turn}", "read"), result(f"c{turn}", "x " * 200, "read"), assistant("done")]

    view, seen = await snapshot_of(rows)

    keys = [origin.key for origin in seen.origins if origin.key]
    assert keys == [node.key for node in seen.nodes]
    assert len(seen.origins) == len(view)
    numbers = [origin.row for origin in seen.origins if origin.row]
    assert numbers[:2] == [1, 2]
    assert numbers[-1] == len(rows) - 1
    assert numbers == sorted(set(numbers))
    for origin, row in zip(seen.origins, view, strict=True):
        assert bool(origin.key) + bool(origin.row) == (row != notes(view))
        assert origin.row is None or rows[origin.row - 1]["role"] == row["role"]
        assert origin.whole_tokens is None


async def test_a_row_made_up_for_a_call_without_a_result_comes_from_nowhere():
    rows = [user("a"), call("1", "read"), user("never mind"), assistant("ok")]

    view, seen = await snapshot_of(rows)

    assert [row["role"] for row in view] == ["user", "assistant", "tool", "user"]
    assert seen.origins == (ViewOrigin(1), ViewOrigin(2), ViewOrigin(), ViewOrigin(3))
