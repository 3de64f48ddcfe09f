"""The view: rows in their order, pins, the row of a node, shortened rows, open calls, copies, and the pairs' check."""

from __future__ import annotations

from typing import Any

from context_summarize.core.frames import show_node
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.render import Rendering, render
from context_summarize.core.view import ShownNode, View
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.summaries.prompts import load_prompts
from tests.support.rows import assistant, call, calls, hook, result, user

FRAME = load_prompts("default").frame.fill


def count(text: str) -> int:
    """A token is a word."""
    return len(text.split())


def system(text: str) -> JsonRow:
    return {"role": "system", "content": text}


def history_of(rows: list[JsonRow]) -> Log:
    history = Log(count)
    for raw in rows:
        history.add(analyse(normalise(raw)))
    return history


def shown(history: Log, first: int, end: int, *, text: str = "Goal: done.") -> ShownNode:
    node = Node(f"key{first}", 0, first, end, 100, 512)
    return show_node(history, node, Summary("k", 0, text, 3, 99), FRAME)


def summarised(history: Log, *ends: int, **changes: Any) -> View:
    """A state with a node for each run of rendered groups that ends at one of these."""
    items = tuple(
        shown(history, first, end, text=f"part {end}") for first, end in zip((0, *ends[:-1]), ends, strict=True)
    )
    given: dict[str, Any] = {
        "nodes": tuple(item.node for item in items),
        "shown": items,
        "frontier": ends[-1],
        "frontier_row": history.row_after(ends[-1], len(history)),
        "rows_at_compaction": len(history),
        "compactions": 1,
    }
    return View(**{**given, **changes})


def view(history: Log, state: View | None = None) -> Rendering:
    return render(history, state or View())


def said(rows: list[JsonRow]) -> list[str]:
    """Rows as short words: the text, the id of a result, `node n` for a summary."""
    out: list[str] = []
    for row in rows:
        content = row["content"]
        if row["role"] == "tool":
            out.append(f"-> {row['tool_call_id']}")
        elif row.get("tool_calls"):
            out.append("call " + " ".join(entry["id"] for entry in row["tool_calls"]))
        elif "messages" in (row.get("metadata") or {}):
            out.append("node {}-{}".format(*row["metadata"]["messages"]))
        else:
            out.append(content if isinstance(content, str) else str(content))
    return out


TURNS: list[JsonRow] = [
    system("be kind"),
    user("one"),
    call("a"),
    hook("between"),
    result("a"),
    assistant("two"),
    hook("after"),
    user("three"),
    assistant("four"),
    user("five"),
    assistant("six"),
]
"""Rendered groups: one, a, two, three, four, five, six."""


# --- order ----------------------------------------------------------------------------------------------------------


def test_system_prompt_and_pins_then_nodes_then_the_verbatim_part() -> None:
    """Rows of hooks go with what is summarised; other pins stand before the node of their range."""
    history = history_of(TURNS)
    rows = view(history, summarised(history, 3, 5)).rows("PROMPT")
    assert said(rows) == ["PROMPT", "be kind", "one", "node 1-4", "node 5-6", "five", "six"]
    history = history_of([*TURNS[:8], {**assistant("four"), "critical": True}, *TURNS[9:]])
    assert said(view(history, summarised(history, 3, 6)).rows(None)) == [
        "be kind", "one", "node 1-4", "four", "node 5-7", "six",
    ]  # fmt: skip


# --- what is handed out ---------------------------------------------------------------------------------------------


def test_continuation_ids_from_before_the_newest_compaction_are_dropped() -> None:
    """Else the provider restores the uncompacted history on its side; ids from after it stay."""
    marked = {"openai:response_id": "r1", "openai:status": "completed"}
    rows = [user("a"), assistant("b"), user("c"), {**assistant("d"), "metadata": dict(marked)}, user("e")]
    history = history_of(rows)
    assert view(history).rows(None)[3]["metadata"] == marked, "before the first compaction"
    state = summarised(history, 2)
    history.add(analyse(normalise({**assistant("f"), "metadata": dict(marked)})))
    seen = {row["content"]: row.get("metadata") for row in view(history, state).rows(None)}
    assert seen["d"] == {"openai:status": "completed"}
    assert seen["f"] == marked
    assert history.rows[3].raw["metadata"] == marked


def test_an_open_group_is_shown_with_its_newest_result_though_a_thread_is_at_an_earlier_one() -> None:
    """A thread that looks at a compaction has found the group, and the host adds a result before it is shown."""
    history = history_of([user("go"), calls(("a", "x", {}), ("b", "x", {}))])
    [earlier] = history.open_groups
    history.add(analyse(normalise(result("a", "found"))))
    assert len(history.entries(earlier)) == 1
    assert "found" in str(view(history).rows(None))


def test_an_open_call_stands_at_the_end_with_the_results_so_far() -> None:
    """Hook rows in between are held back until it closes."""
    history = history_of([user("a"), calls(("x", "n", {}), ("y", "n", {})), hook("h1"), result("x"), hook("h2")])
    built = view(history)
    assert said(built.rows(None)) == ["a", "call x y", "-> x"]
    assert (len(built.entries), len(built.open)) == (3, 2)
    history.add(analyse(normalise(result("y"))))
    assert said(view(history).rows(None)) == ["a", "call x y", "-> x", "-> y", "h1", "h2"]
