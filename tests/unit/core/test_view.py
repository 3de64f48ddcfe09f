"""The view: rows in their order, pins, the row of a node, shortened rows, open calls, copies, and the pairs' check."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from amplifier_core.message_models import Message

from context_summarize.core.frames import show_node
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.view import ShownGroups, View, shortened_row
from context_summarize.core.view_state import ShownNode, ViewState
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import assistant, call, calls, hook, result, user
from context_summarize.tokens.measure import measure

FRAME = load_prompts("default").frame.fill


def count(text: str) -> int:
    """A token is a word."""
    return len(text.split())


def system(text: str) -> JsonRow:
    return {"role": "system", "content": text}


def history_of(rows: list[JsonRow]) -> History:
    history = History()
    for raw in rows:
        history.add(analyse(normalise(raw)))
    return history


def shown(history: History, first: int, end: int, *, text: str = "Goal: done.") -> ShownNode:
    node = Node(f"key{first}", 0, first, end, 100, 512)
    return show_node(history, node, Summary("k", 0, text, 3, 99), FRAME, count)


def summarised(history: History, *ends: int, **changes: Any) -> ViewState:
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
    return ViewState(**{**given, **changes})


def view(history: History, state: ViewState | None = None, *, factory: bool = False) -> View:
    return View(state or ViewState(), ShownGroups(history, count, hides_system=factory))


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


# --- shortened rows -------------------------------------------------------------------------------------------------

LONG = "word " * 1_000
IMAGE: JsonRow = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" * 400},
}
_WRITE = {"name": "write", "arguments": json.dumps({"path": "x", "text": LONG})}
SHAPES: dict[str, JsonRow] = {
    "text": user(LONG),
    "result": result("a", LONG),
    "text and image": user([{"type": "text", "text": LONG}, IMAGE]),
    "many short texts": user([{"type": "text", "text": "a few words here"}] * 200),
    "call and text": call("a", "bash", LONG, command=LONG),
    "many short fields": call("a", "bash", **{f"field_{at}": f"value {at}" for at in range(300)}),
    "parallel calls": calls(("a", "x", {"t": LONG}), ("b", "y", {"lines": [LONG, {"deep": LONG}]}), ("c", "z", {})),
    "openai": {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "type": "function", "function": _WRITE}],
    },
}


@pytest.mark.parametrize("row", SHAPES.values(), ids=SHAPES)
def test_a_row_of_any_shape_is_cut_to_about_the_size_asked_for(row: JsonRow) -> None:
    """The row stays one that the host takes, ids and names stay, and the one given is not changed."""
    before = copy.deepcopy(row)
    out, tokens = shortened_row(row, measure(row, count), 40, count, "")
    if "function" not in str(row):
        Message(**out)
    assert measure(out, count) == tokens <= 60
    assert row == before
    read, whole = analyse(out), analyse(row)
    assert [(made.id, made.name) for made in read.calls] == [(made.id, made.name) for made in whole.calls]
    assert read.result_ids == whole.result_ids


# --- what is handed out ---------------------------------------------------------------------------------------------


def test_continuation_ids_from_before_the_newest_compaction_are_dropped() -> None:
    """Else the provider restores the uncompacted history on its side; ids from after it stay."""
    marked = {"openai:response_id": "r1", "openai:status": "completed"}
    rows = [user("a"), assistant("b"), user("c"), {**assistant("d"), "metadata": dict(marked)}, user("e")]
    history = history_of(rows)
    groups = ShownGroups(history, count)
    assert View(ViewState(), groups).rows(None)[3]["metadata"] == marked, "before the first compaction"
    built = View(summarised(history, 2), groups)
    history.add(analyse(normalise({**assistant("f"), "metadata": dict(marked)})))
    seen = {row["content"]: row.get("metadata") for row in built.rows(None)}
    assert seen["d"] == {"openai:status": "completed"}
    assert seen["f"] == marked
    assert history.rows[3].raw["metadata"] == marked


def test_a_view_grows_at_its_end_alone() -> None:
    """Between compactions, the earlier view is a prefix of the later one, and its size that of its rows."""
    history = history_of(TURNS)
    growing = view(history, summarised(history, 3))
    before = growing.rows("P")
    for raw in (call("b"), hook("held"), result("b"), user("next"), call("c"), user("passed over"), assistant("x")):
        history.add(analyse(normalise(raw)))
        after = growing.rows("P")
        assert after[: len(before)] == before
        assert len(growing) == len(after) - 1
        before = after
    assert said(after)[-8:] == ["call b", "-> b", "held", "next", "call c", "-> c", "passed over", "x"]
    assert growing.tokens() == sum(measure(row, count) for row in after[1:])
