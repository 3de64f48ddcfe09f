"""What a host's copy of the history may lack, what makes it another history, and the repair that it brings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.history_file import HistoryFile
from context_summarize.messages.checking import normalise
from context_summarize.messages.rows import JsonRow
from tests.properties.strategies import STORED_ROWS
from tests.support.rows import user
from tests.support.saved import saved

Rows = list[JsonRow]
EXAMPLES = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Rows, Rows], Rows]]:
    """What a session that was resumed from its file continues with after a host's copy."""
    path = str(tmp_path_factory.mktemp("copy") / "h.jsonl")
    first, file = (HistoryFile(path, lambda _: None, lambda _: None) for _ in range(2))
    with asyncio.Runner() as runner:
        runner.run(first.append([user("a")]))
        runner.run(first.close())
        runner.run(file.ready())
        yield lambda ours, theirs: runner.run(file.accepted(ours, theirs))
        runner.run(file.close())


SYSTEM: JsonRow = {"role": "system", "content": "Be brief."}
FILES: JsonRow = {"role": "developer", "content": "context file"}
TURN: Rows = [
    SYSTEM,
    FILES,
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": None, "content": [None, "rs_2"]},
            {"type": "text", "text": "Let me look.", "visibility": None},
            {
                "type": "tool_call",
                "id": "c1",
                "name": "weather",
                "input": {"days": (1, 2), "flags": {1: True}, "at": None},
            },
        ],
        "thinking_block": {"type": "thinking", "text": "hm"},
    },
    user("from a hook", metadata={"source": "hook"}),
    user("gone soon", metadata={"ephemeral": True}),
]


def test_a_host_may_drop_thinking_blocks_but_no_others(accepted):
    """Private reasoning is the provider's; text and calls are the history."""
    answer, *after = saved(TURN)
    thinking, text, call = answer["content"]

    def changed(*content: Any) -> Rows:
        return [{**answer, "content": list(content)}, *after]

    assert accepted(TURN, saved(TURN)) is TURN
    assert accepted(TURN, changed(text, call)) is TURN
    assert accepted(TURN, changed(thinking, call)) is not TURN
    assert accepted(TURN, changed(thinking, text)) is not TURN


@EXAMPLES
@given(STORED_ROWS)
def test_any_history_is_recognised_after_the_host_has_saved_it(accepted, rows):
    """And after it has been to our own file and back."""
    rows = [normalise(row) for row in rows]
    assert accepted(rows, rows) is rows
    assert accepted(rows, saved(rows)) is rows
    ours = json.loads(json.dumps(rows))
    assert accepted(ours, rows) is ours


@EXAMPLES
@given(STORED_ROWS, st.data())
def test_no_change_of_a_saved_row_goes_unseen(accepted, rows, data):
    """Any row taken away, doubled, moved or given another text is a difference, unless the rows are equal anyway."""
    rows = [normalise(row) for row in rows]
    theirs = saved(rows)
    if not theirs:
        return
    at = data.draw(st.integers(0, len(theirs) - 1))
    if theirs[at].get("metadata") is not None or theirs[at].get("ephemeral") is not None:
        return
    assert accepted(rows, theirs[:at] + theirs[at + 1 :]) is not rows
    assert accepted(rows, theirs[: at + 1] + theirs[at:]) is not rows
    other = theirs[at] | {"content": [theirs[at].get("content"), "and more"]}
    assert accepted(rows, [*theirs[:at], other, *theirs[at + 1 :]]) is not rows


@pytest.mark.parametrize(("ours", "theirs"), [(True, 1), (1, 1.0), (0.0, -0.0), ("", [])])
def test_values_that_python_takes_for_equal_are_told_apart(accepted, ours, theirs):
    """JSON writes them differently."""
    given = [user("x", data=[ours])]
    assert accepted(given, [user("x", data=[theirs])]) is not given


FRESH: JsonRow = {"role": "system", "content": "Be quick."}
HOOK: JsonRow = {"role": "system", "content": "note", "metadata": {"source": "hook"}}


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([SYSTEM, FILES, user("a"), SYSTEM], [user("b")], [SYSTEM, FILES, user("b")]),
        ([SYSTEM, user("a")], [FRESH, user("b")], [FRESH, user("b")]),
        ([SYSTEM, FILES, user("a")], [FRESH, user("b")], [FILES, FRESH, user("b")]),
        ([HOOK, SYSTEM, user("a")], [user("b")], [user("b")]),
        ([SYSTEM], [HOOK, user("b")], [SYSTEM, HOOK, user("b")]),
        ([user("a"), SYSTEM], [user("b"), FRESH], [user("b"), FRESH]),
    ],
)
def test_a_repair_is_taken_as_given_after_our_leading_system_rows(accepted, ours, theirs, expected):
    """Unless it brings its own of that role; rows of hooks lead nothing."""
    assert accepted([*ours, user("more")], theirs) == expected
