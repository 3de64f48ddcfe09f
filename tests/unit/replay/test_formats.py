"""Recordings in every form: the same session reads the same, and what is no message is named with its first place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from context_summarize.errors import CommandError
from context_summarize.replay import inspect_rows, open_recording, row_text

EDIT = {"file_path": "src/cart.py", "old_string": "def load()", "new_string": "def load_cart()"}
TURNS: list[tuple[str, Any]] = [
    ("user", "Rename load, please."),
    ("calls", [("c1", "Edit", EDIT, "ok"), ("c2", "Bash", {"command": "pytest -q"}, "1 failed, 3 passed")]),
    ("assistant", "One test fails."),
    ("user", "Mend it."),
]
"""A session: what was said, and calls with their results."""


def amplifier() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for kind, said in TURNS:
        if kind != "calls":
            rows.append({"role": kind, "content": said})
            continue
        blocks = [{"type": "tool_call", "id": id_, "name": name, "input": given} for id_, name, given, _ in said]
        rows.append({"role": "assistant", "content": [{"type": "text", "text": "I do it."}, *blocks]})
        rows += [{"role": "tool", "tool_call_id": id_, "content": result} for id_, _, _, result in said]
    return rows


def openai() -> list[dict[str, Any]]:
    rows = amplifier()
    calls = [(id_, {"name": name, "arguments": json.dumps(given)}) for id_, name, given, _ in TURNS[1][1]]
    entries = [{"id": id_, "type": "function", "function": function} for id_, function in calls]
    rows[1] = {"role": "assistant", "content": "I do it.", "tool_calls": entries}
    return rows


def anthropic() -> list[dict[str, Any]]:
    rows = amplifier()
    blocks = [{**block, "type": block["type"].replace("call", "use")} for block in rows[1]["content"]]
    results = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, _, _, text in TURNS[1][1]]
    return [rows[0], {"role": "assistant", "content": blocks}, {"role": "user", "content": results}, *rows[4:]]


def claude_code() -> list[dict[str, Any]]:
    """An answer comes in several lines, one for each block, with results between them."""
    said, did, results, *after = anthropic()[0:1], *anthropic()[1:]
    parts = [{**did, "id": "msg_1", "content": [block]} for block in did["content"]]
    told = [{"role": "user", "content": [block]} for block in results["content"]]
    messages = [*said, parts[0], parts[1], told[0], parts[2], told[1], *after]
    return [{"type": one["role"], "message": one, "isSidechain": False} for one in messages]


def lines(entries: Sequence[Any]) -> str:
    return "\n".join(map(json.dumps, entries))


FORMS: dict[str, Callable[[], str]] = {
    "Amplifier": lambda: lines(amplifier()),
    "OpenAI, lines": lambda: lines(openai()),
    "OpenAI, an array": lambda: json.dumps(openai(), indent=2),
    "OpenAI, a request": lambda: json.dumps({"model": "m", "messages": openai()}),
    "Anthropic": lambda: lines(anthropic()),
    "Anthropic, a request": lambda: json.dumps({"messages": anthropic()}, indent=1),
    "Claude Code": lambda: lines(claude_code()),
}


def read(folder: Path, text: str) -> Any:
    path = folder / "a.jsonl"
    path.write_text(text, "utf-8")
    return open_recording(str(path))


@pytest.mark.parametrize("form", FORMS)
def test_a_session_reads_the_same_in_each_form(tmp_path: Path, form: str) -> None:
    """What was said, and calls with their arguments and results, in rows as Amplifier stores them."""
    told = read(tmp_path, FORMS[form]())

    assert [(row["role"], row_text(row)) for row in told.rows] == [(one["role"], row_text(one)) for one in amplifier()]
    assert told.left_out == ""
    found = inspect_rows(told.rows)
    assert [(one["tool"], one["calls"], one["results"]) for one in found.tools] == [("Edit", 1, 1), ("Bash", 1, 1)]
    assert (found.unanswered_calls, found.orphan_results) == ([], 0)


def test_the_system_prompt_of_a_request_is_read(tmp_path: Path) -> None:
    told = read(tmp_path, json.dumps({"system": "Be kind.", "messages": anthropic()}))
    assert told.rows[0] == {"role": "system", "content": "Be kind."}


def test_of_claude_codes_lines_the_conversation_is_read(tmp_path: Path) -> None:
    """No sub-agent, no summary of what the file holds; what was typed during calls comes behind their results."""
    said = {"role": "user", "content": "x"}
    synthetic: dict[str, Any] = {**said, "metadata": {"amplifier:input": {"origin": "synthetic"}}}
    meanwhile = [
        {"type": "progress", "data": {}},
        {"type": "user", "message": said, "isSidechain": True},
        {"type": "queue-operation", "operation": "enqueue", "content": "Use tabs."},
        {"type": "user", "message": said, "isCompactSummary": True},
        {"type": "queue-operation", "operation": "remove"},
        {"type": "progress", "data": {}},
    ]
    entries = claude_code()
    after = {"type": "user", "message": said, "isMeta": True, "timestamp": "2026-01-01T00:00:00Z"}

    told = read(tmp_path, lines([*entries[:3], *meanwhile, *entries[3:], after]))

    assert [row["role"] for row in told.rows] == [
        "user",
        "assistant",
        "tool",
        "tool",
        *["user", "assistant", "user", "user"],
    ]
    assert told.rows[4]["content"] == "Use tabs."
    assert told.rows[7] == {**said, "metadata": {**synthetic["metadata"], "timestamp": after["timestamp"]}}
    assert "2 of type 'progress' (first: line 4), 1 of a sub-agent (first: line 5), 1 with a summary" in told.left_out
    assert read(tmp_path, lines(meanwhile[3:4])).rows == [synthetic], "all that there is"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"role": "model", "content": "x"}', "unknown role 'model'; expected one of"),
        ('{"role": "tool", "content": "x"}', "a tool message needs the id of its call"),
        ('{"type": "note"}', "of type 'note'"),
        ('{"mapping": {}, "title": 1}', "with the keys mapping, title"),
        ("[1]", "not a message: a message must be a dict, got int (first: line 2, entry 1)"),
        ("{role", "not JSON"),
        ("\x1f", "not JSON"),
    ],
)
def test_what_is_not_understood_is_left_out_and_named_with_its_first_place(
    tmp_path: Path, text: str, says: str
) -> None:
    """It is counted; where there is nothing else, it is refused."""
    good = '{"role": "user", "content": "x"}'

    told = read(tmp_path, f"{good}\n{text}\n{good}\n{text}")
    assert len(told.rows) == 2
    assert says in told.left_out
    assert "line 2" in told.left_out
    with pytest.raises(CommandError, match=r"a\.jsonl.* a recording "):
        read(tmp_path, text)
