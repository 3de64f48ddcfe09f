"""The view: rows in their order, pins, the row of a node, shortened rows, open calls, copies, and the pairs' check."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from amplifier_core.message_models import Message

from context_summarize.core.frames import CONTINUES, one_line, show_node, show_one_line
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.shown_groups import ShownGroups, shortened_row
from context_summarize.core.view import View
from context_summarize.core.view_state import ShownNode, ViewState
from context_summarize.messages.checking import normalise
from context_summarize.messages.pairs import broken_pairs
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import NO_RESULT, JsonRow
from context_summarize.summaries.prompts import load_prompts
from context_summarize.testing import assistant, call, calls, hook, result, user
from context_summarize.tokens.measure import Count, measure

FRAME = load_prompts("default").frame.fill
IMAGE: JsonRow = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" * 400},
}
THINKING = {"type": "thinking", "thinking": "hm " * 300, "signature": "s1g"}
REDACTED = {"type": "redacted_thinking", "data": "x" * 900}
REASONING = {"type": "reasoning", "content": ["deep " * 200], "summary": [{"type": "summary_text", "text": "s" * 900}]}


def count(text: str) -> int:
    """A token is a word."""
    return len(text.split())


def shorten_row(row: JsonRow, keep: int, count: Count) -> JsonRow:
    """The row cut to about `keep` tokens, without a hint."""
    return shortened_row(row, measure(row, count), keep, count, "")[0]


def system(text: str) -> JsonRow:
    return {"role": "system", "content": text}


def history_of(rows: list[JsonRow], *, preserve_system: bool = True) -> History:
    history = History()
    for raw in rows:
        history.add(analyse(normalise(raw), preserve_system=preserve_system))
    return history


def summary(text: str = "Goal: done.", **changes: Any) -> Summary:
    given: dict[str, Any] = {"key": "k", "level": 0, "text": text, "tokens": 3, "source_tokens": 99}
    return Summary(**{**given, **changes})


def shown(history: History, first: int, end: int, *, role: str = "system", text: str = "Goal: done.") -> ShownNode:
    node = Node(f"key{first}", 0, 0, first, end, 100, 512)
    return show_node(history, node, summary(text), FRAME, role, count)


def folded(history: History, *ends: int, role: str = "system", **changes: Any) -> ViewState:
    """A state with a node for each run of rendered groups that ends at one of these."""
    items = tuple(
        shown(history, first, end, role=role, text=f"part {end}")
        for first, end in zip((0, *ends[:-1]), ends, strict=True)
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


class TestOrder:
    def test_without_a_boundary_every_row_stands(self) -> None:
        """Rows that stood between a call and its results follow the results."""
        rows = view(history_of(TURNS)).rows(None)
        assert said(rows) == [
            "be kind", "one", "call a", "-> a", "between", "two", "after", "three", "four", "five", "six",
        ]  # fmt: skip
        assert broken_pairs(rows) == []

    def test_system_prompt_first_user_message_nodes_then_the_verbatim_part(self) -> None:
        """The order of the design; folding drops hook rows."""
        history = history_of(TURNS)
        rows = view(history, folded(history, 3, 5)).rows("PROMPT")
        assert said(rows) == ["PROMPT", "be kind", "one", "node 1-4", "node 5-6", "five", "six"]
        assert rows[0] == system("PROMPT")

    def test_other_pins_stand_before_the_node_of_their_range(self) -> None:
        """A critical row of the second node's range follows the first node."""
        rows = [*TURNS[:8], {**assistant("four"), "critical": True}, *TURNS[9:]]
        history = history_of(rows)
        assert said(view(history, folded(history, 3, 6)).rows(None)) == [
            "be kind", "one", "node 1-4", "four", "node 5-7", "six",
        ]  # fmt: skip

    def test_a_view_grows_at_its_end_alone(self) -> None:
        """Rule 5: between boundaries, the earlier view is a prefix of the later one."""
        history = history_of(TURNS)
        growing = view(history, folded(history, 3))
        before = growing.rows("P")
        for raw in (call("b"), hook("held"), result("b"), user("next"), call("c"), user("passed over"), assistant("x")):
            history.add(analyse(normalise(raw)))
            after = growing.rows("P")
            assert after[: len(before)] == before
            assert len(growing) == len(after) - 1
            before = after
        assert said(after)[-8:] == ["call b", "-> b", "held", "next", "call c", "-> c", "passed over", "x"]
        assert growing.tokens() == sum(measure(row, count) for row in after[1:])

    def test_a_view_opens_with_a_user_row_after_a_boundary(self) -> None:
        """Rule 6: some providers refuse a conversation that opens with an assistant row."""
        history = history_of([assistant("a"), assistant("b"), assistant("c")])
        assert said(view(history).rows(None)) == ["a", "b", "c"], "as the history has it, before a boundary"
        rows = view(history, folded(history, 1)).rows(None)
        assert said(rows) == ["node 1-1", CONTINUES, "b", "c"]
        assert rows[1]["metadata"] == {"source": "context-summarize", "ephemeral": True}

    def test_a_summary_in_the_user_role_opens_the_conversation(self) -> None:
        """summary_role: user."""
        history = history_of([assistant("a"), assistant("b")])
        rows = view(history, folded(history, 1, role="user")).rows(None)
        assert said(rows) == ["node 1-1", "b"]
        assert rows[0]["role"] == "user"


class TestPins:
    def pinned(self, history: History, frontier: int, newest: int | None = None, *, factory: bool = False) -> list[int]:
        row = history.row_after(frontier, len(history))
        groups = ShownGroups(history, count, hides_system=factory)
        state = ViewState(frontier=frontier, frontier_row=row, newest_user=newest)
        return [group.start for group in groups.pins(state)]

    def test_first_and_newest_user_message(self) -> None:
        """Chosen at each boundary; both once when they are the same."""
        history = history_of(TURNS[1:])
        assert self.pinned(history, 5, 3) == [0, 6]
        assert self.pinned(history, 5, 0) == [0]
        assert self.pinned(history, 5) == [0]
        assert self.pinned(history, 3, 5) == [0], "what stands verbatim is no pin"

    def test_a_critical_row_brings_its_group(self) -> None:
        """A critical result brings its call."""
        rows = [user("one"), call("a"), {**result("a"), "metadata": {"critical": True}}, assistant("b"), user("c")]
        history = history_of(rows)
        assert said(view(history, folded(history, 3)).rows(None)) == ["one", "call a", "-> a", "node 1-4", "c"]

    def test_equal_system_rows_are_shown_once(self) -> None:
        """Hosts add theirs again at every resume."""
        rows = [system("kind"), user("a"), system("kind"), system("brief"), assistant("b"), user("c")]
        rows[3:3] = [{"role": "developer", "content": "kind"}]
        history = history_of(rows)
        assert said(view(history, folded(history, 2)).rows(None)) == ["kind", "a", "kind", "brief", "node 1-2", "c"]

    def test_without_preserve_system_they_are_folded(self) -> None:
        """They leave the view with their range."""
        history = history_of([system("kind"), user("a"), assistant("b"), user("c")], preserve_system=False)
        assert said(view(history, folded(history, 2)).rows(None)) == ["a", "node 1-2", "c"]


class TestNodeRow:
    def test_it_is_one_row_with_a_plain_string(self) -> None:
        """role, content, metadata with exactly these keys; the range counts rendered rows."""
        history = history_of(TURNS)
        row = shown(history, 1, 4, text="the text").row
        assert row == {
            "role": "system",
            "content": FRAME(text="the text", first="2", last="5", count="4", level="0", recall=""),
            "metadata": {
                "source": "context-summarize",
                "ephemeral": True,
                "key": "key1",
                "level": 0,
                "messages": [2, 5],
            },
        }
        assert isinstance(row["content"], str)
        Message(**row)

    def test_a_one_line_node_keeps_range_and_counts(self) -> None:
        """The last rung of the ladder."""
        history = history_of(TURNS)
        node = shown(history, 1, 4, role="user")
        line = show_one_line(history, node, count)
        assert line.row["content"] == one_line(history, node.node)
        assert "messages 2–5" in line.row["content"]
        assert "4 in all" in line.row["content"]
        assert (line.row["role"], line.row["metadata"]) == ("user", node.row["metadata"])
        assert (line.node, line.summary) == (node.node, node.summary)
        assert line.tokens == measure(line.row, count) < node.tokens


LONG = "word " * 1_000
_WRITE = {"name": "write", "arguments": json.dumps({"path": "x", "text": LONG})}
WRITES: JsonRow = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "a", "type": "function", "function": _WRITE}],
}
"""A call in OpenAI's shape."""
SHAPES: list[Any] = [
    pytest.param(user(LONG), id="text"),
    pytest.param(result("a", LONG), id="result"),
    pytest.param(user([{"type": "text", "text": LONG}, IMAGE]), id="text and image"),
    pytest.param(user([IMAGE] * 3), id="images"),
    pytest.param(user([{"type": "text", "text": "a few words here"}] * 200), id="many short texts"),
    pytest.param(user([{"type": "tool_result", "tool_call_id": "a", "output": LONG}]), id="tool_result"),
    pytest.param(
        user([{"type": "tool_result", "tool_call_id": "a", "output": {"rows": [LONG, 1]}}]), id="tool_result of data"
    ),
    pytest.param(call("a", "bash", LONG, command=LONG), id="call and text"),
    pytest.param(call("a", "bash", **{f"field_{at}": f"value {at}" for at in range(300)}), id="many short fields"),
    pytest.param(calls(("a", "bash", {"lines": [LONG, {"deep": LONG}], "name": LONG})), id="nested arguments"),
    pytest.param(calls(("a", "x", {"t": LONG}), ("b", "y", {"t": LONG}), ("c", "z", {})), id="parallel calls"),
]


class TestElidedRow:
    @pytest.mark.parametrize("row", SHAPES)
    def test_every_shape_is_cut_to_about_the_size_asked_for(self, row: JsonRow) -> None:
        """The row stays one that the host takes, ids and names stay, and the one given is not changed."""
        before = copy.deepcopy(row)
        out = shorten_row(row, 40, count)
        Message(**out)
        assert measure(out, count) <= 60
        assert row == before
        read, whole = analyse(out), analyse(row)
        assert [(made.id, made.name) for made in read.calls] == [(made.id, made.name) for made in whole.calls]
        assert read.result_ids == whole.result_ids
        assert {key: out[key] for key in out if key not in ("content", "tool_calls")} == {
            key: row[key] for key in row if key not in ("content", "tool_calls")
        }

    def test_arguments_are_the_same_in_blocks_and_in_tool_calls(self) -> None:
        """Hosts read either."""
        out = shorten_row(calls(("a", "bash", {"text": LONG, **{f"f{at}": "v v" for at in range(90)}})), 150, count)
        assert out["content"][-1]["input"] == out["tool_calls"][0]["arguments"]

    def test_a_text_keeps_two_thirds_head_and_one_third_tail(self) -> None:
        """With a count of what was left out."""
        text = "".join(f"{at:04d} " for at in range(1_000))
        content = shorten_row(user(text), 300, count)["content"]
        head, note, tail = content.split("\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert 1.9 < len(head) / len(tail) < 2.1
        assert f"{len(text) - len(head) - len(tail):,} of 5,000 characters left out" in note

    @pytest.mark.parametrize("block", [THINKING, REDACTED, REASONING])
    def test_private_reasoning_is_untouched(self, block: JsonRow) -> None:
        """Signed by the provider: a changed one is refused."""
        made = call("a", text=LONG, command=LONG)
        out = shorten_row({**made, "content": [block, *made["content"]]}, 24, count)
        assert out["content"][0] == block
        assert measure(out, count) < measure(made, count)

    def test_an_image_becomes_a_note(self) -> None:
        """It cannot be cut."""
        out = shorten_row(user([IMAGE, {"type": "text", "text": "what is this?"}]), 60, count)
        assert IMAGE["source"]["data"][:40] not in json.dumps(out)
        assert "image" in out["content"][0]["text"]

    @pytest.mark.parametrize("keep", [10, 300])
    def test_entries_of_the_openai_shape_are_cut_too(self, keep: int) -> None:
        """`function.arguments` is a string, and stays JSON: a provider that reads it would refuse the request."""
        out = shorten_row(WRITES, keep, count)
        assert out["tool_calls"][0]["function"]["name"] == "write"
        assert len(out["tool_calls"][0]["function"]["arguments"]) < 3_000
        assert isinstance(json.loads(out["tool_calls"][0]["function"]["arguments"]), dict)


class TestSize:
    def test_the_size_of_a_view_is_that_of_its_rows(self) -> None:
        """Shortened ones too."""
        history = history_of([*TURNS, call("x"), result("x", LONG), user("z"), call("y"), hook("held")])
        state = folded(history, 3, shortened={12: 60})
        built = view(history, state)
        assert built.tokens() == sum(measure(row, count) for row in built.rows(None)) < 300


class TestOpenAndAbandonedCalls:
    def test_an_open_call_stands_at_the_end_with_the_results_so_far(self) -> None:
        """Hook rows in between are held back until it closes."""
        rows = [user("a"), calls(("x", "n", {}), ("y", "n", {})), hook("h1"), result("x"), hook("h2")]
        history = history_of(rows)
        built = view(history)
        assert said(built.rows(None)) == ["a", "call x y", "-> x"]
        assert len(built) == 3
        history.add(analyse(normalise(result("y"))))
        assert said(built.rows(None)) == ["a", "call x y", "-> x", "-> y", "h1", "h2"]

    def test_an_abandoned_call_is_given_a_result(self) -> None:
        """Passed over by a user row: no result recorded."""
        history = history_of([user("a"), calls(("x", "n", {}), ("y", "m", {})), result("x"), hook("h"), user("b")])
        rows = view(history).rows(None)
        assert said(rows) == ["a", "call x y", "-> x", "-> y", "h", "b"]
        made = rows[3]
        assert (made["content"], made["name"]) == (NO_RESULT, "m")
        assert made["metadata"] == {"source": "context-summarize", "synthetic": True}
        Message(**made)
        assert broken_pairs(rows) == []


class TestFactory:
    def test_stored_system_rows_are_hidden_behind_its_prompt(self) -> None:
        """Hook rows are not."""
        history = history_of([system("stored"), hook("note"), user("a"), assistant("b"), user("c")])
        assert said(view(history, factory=True).rows("P")) == ["P", "note", "a", "b", "c"]
        assert said(view(history, folded(history, 2), factory=True).rows("P")) == ["P", "a", "node 1-2", "c"]


class TestCopies:
    def test_changing_a_view_changes_nothing(self) -> None:
        """Rule 1: copied down to its content blocks."""
        rows = [
            user([{"type": "text", "text": "a"}]),
            call("x", command="ls"),
            result("x", [{"type": "text", "text": "ok"}]),
            {**assistant("b"), "metadata": {"deep": {"er": [1]}}},
            user("c"),
            call("open", args={"k": [1]}),
        ]
        history = history_of(rows)
        built = view(history, folded(history, 1, shortened={1: 5}))
        before = copy.deepcopy(built.rows("P"))

        def spoil(value: Any) -> None:
            for item in list(value.values()) if isinstance(value, dict) else value:
                if isinstance(item, dict | list):
                    spoil(item)
            value.clear()

        spoil(built.rows("P"))
        assert built.rows("P") == before
        assert [row.raw for row in history.rows] == rows


class TestContinuation:
    def test_ids_from_before_the_newest_boundary_are_dropped(self) -> None:
        """Else the provider restores the uncompacted history on its side; ids from after it stay."""
        marked = {"openai:response_id": "r1", "openai:status": "completed"}
        rows = [user("a"), assistant("b"), user("c"), {**assistant("d"), "metadata": dict(marked)}, user("e")]
        history = history_of(rows)
        assert view(history).rows(None)[3]["metadata"] == marked, "before the first boundary"
        built = view(history, folded(history, 2))
        history.add(analyse(normalise({**assistant("f"), "metadata": dict(marked)})))
        seen = {row["content"]: row.get("metadata") for row in built.rows(None)}
        assert seen["d"] == {"openai:status": "completed"}
        assert seen["f"] == marked
        assert history.rows[3].raw["metadata"] == marked


class TestPairsIntact:
    OK = result("a")

    @pytest.mark.parametrize(
        "rows",
        [
            [],
            [user("a"), assistant("b")],
            [call("a"), OK, user("b")],
            [calls(("a", "x", {}), ("b", "x", {})), result("b"), result("a")],
            [user("a"), call("a")],
            [calls(("a", "x", {}), ("b", "x", {})), result("b")],
            [call("a"), OK, call("a"), OK],
            [call("a"), user([{"type": "tool_result", "tool_call_id": "a", "output": "x"}])],
        ],
    )
    def test_whole_pairs_are_whole(self, rows: list[JsonRow]) -> None:
        """Calls at the very end may be open; ids may repeat."""
        assert broken_pairs(rows) == []

    @pytest.mark.parametrize(
        ("rows", "found"),
        [
            ([user("a"), result("x")], ["row 1: result 'x' without its call"]),
            ([result("a"), call("a")], ["row 0: result 'a' without its call"]),
            ([call("a"), OK, OK], ["row 2: result 'a' without its call"]),
            ([call("a"), user("b")], ["row 1: call 'a' has no result"]),
            ([call("a"), hook("h"), OK], ["row 1: call 'a' has no result", "row 2: result 'a' without its call"]),
            (
                [calls(("a", "x", {}), ("b", "x", {})), OK, call("c")],
                ["row 2: call 'b' has no result"],
            ),
            (
                [user([{"type": "tool_result", "tool_call_id": "a", "output": ""}])],
                ["row 0: result 'a' without its call"],
            ),
        ],
    )
    def test_each_kind_of_break_is_found(self, rows: list[JsonRow], found: list[str]) -> None:
        """Named by row and id."""
        assert broken_pairs(rows) == found
