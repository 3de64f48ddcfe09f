"""Recordings: the same session reads the same in every form, by file or by id; what is no message is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from context_summarize.errors import CommandError
from context_summarize.messages.reading import broken_pairs
from context_summarize.replay import open_recording, row_text
from tests.support.paths import ROOT
from tests.support.rows import user

FORMS = ROOT / "tests" / "corpora" / "recordings"
"""One session in each form. In Claude Code's, an answer comes in several lines, with results between them."""
GOOD = json.dumps(user("x"))


def entries(form: str) -> list[Any]:
    return [json.loads(line) for line in (FORMS / form).read_text("utf-8").splitlines()]


def lines(entries: Sequence[Any]) -> str:
    return "\n".join(map(json.dumps, entries))


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str | bytes], Any]:
    def open_(content: str | bytes) -> Any:
        path = tmp_path / "a.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_recording(str(path))

    return open_


@pytest.mark.parametrize("form", sorted(FORMS.iterdir()), ids=lambda form: str(form.name))
def test_a_session_reads_the_same_in_each_form(form: Path) -> None:
    told = open_recording(str(form))

    amplifier = entries("amplifier.jsonl")
    assert [(row["role"], row_text(row)) for row in told.rows] == [(row["role"], row_text(row)) for row in amplifier]
    assert told.left_out == ""
    assert broken_pairs(told.rows) == []


def test_the_system_prompt_of_a_request_is_read(read) -> None:
    told = read(json.dumps({"system": "Be kind.", "messages": [user("x")]}))
    assert told.rows == [{"role": "system", "content": "Be kind."}, user("x")]


def test_a_request_of_the_responses_api_is_read_with_its_instructions(read) -> None:
    """Reasoning goes with the answer that follows it; a call has whatever the API has for its arguments."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}
    shell = {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}}
    patch = {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch"}
    outputs = [
        {"type": "local_shell_call_output", "call_id": "c1", "output": {"content": "a.py", "success": True}},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "done"}]},
    ]
    asked = [user("x"), thought, shell, patch, *outputs, {"type": "web_search_call", "id": "ws_1"}]
    told = read(json.dumps({"model": "m", "instructions": "Be kind.", "input": asked}))
    calls = [
        {"type": "tool_call", "id": "c1", "name": "local_shell", "input": shell["action"]},
        {"type": "tool_call", "id": "c2", "name": "apply_patch", "input": "*** Begin Patch"},
    ]
    assert told.rows == [
        {"role": "system", "content": "Be kind."},
        user("x"),
        {"role": "assistant", "content": [thought, *calls]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "input_text", "text": "done"}]},
    ]
    assert told.left_out == "1 entry of type 'web_search_call' (first: line 1, entry 7)"
    assert read(json.dumps({"input": "x"})).rows == [user("x")]


def test_of_claude_codes_lines_the_conversation_is_read(read) -> None:
    """No sub-agent, no summary of what the file holds; what was typed meanwhile stands where it was seen."""
    said = user("x")
    marks = {"amplifier:input": {"origin": "synthetic"}}
    meanwhile = [
        {"type": "progress", "data": {}},
        {"type": "user", "message": said, "isSidechain": True},
        {"type": "queue-operation", "operation": "enqueue", "content": "Use tabs."},
        {"type": "user", "message": said, "isCompactSummary": True},
        {"type": "queue-operation", "operation": "remove"},
        {"type": "progress", "data": {}},
    ]
    whole = entries("claude_code.jsonl")
    after = {"type": "user", "message": said, "isMeta": True, "timestamp": "2026-01-01T00:00:00Z"}

    told = read(lines([*whole[:3], *meanwhile, *whole[3:], after]))

    roles = [row["role"] for row in told.rows]
    assert roles == ["user", "assistant", "user", "tool", "tool", "assistant", "user", "user"]
    assert told.rows[2]["content"] == "Use tabs."
    assert told.rows[7] == {**said, "metadata": {**marks, "timestamp": after["timestamp"]}}
    assert told.left_out.startswith("2 entries of type 'progress' (first: line 4), 1 entry of a sub-agent (first: line")
    assert read(lines(meanwhile[3:4])).rows == [{**said, "metadata": marks}], "all that there is"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"role": "model", "content": "x"}', "unknown role 'model'; expected one of"),
        ('{"role": "tool", "content": "x"}', "a tool message needs the id of its call"),
        ('{"type": "note"}', "of type 'note'"),
        ('{"mapping": {}, "title": 1}', "with the keys mapping, title"),
        (json.dumps(dict.fromkeys("abcdefg", 1)), "with the keys a, b, c, d, e (first: line 2)"),
        ("[1]", "2 entries in no known form: a message must be a dict, got int (first: line 2, entry 1)"),
        ("{role", "2 entries not in JSON (first: line 2)"),
        ("\x1f", "not in JSON"),
    ],
)
def test_what_is_not_understood_is_left_out_and_named_with_its_first_place(read, text: str, says: str) -> None:
    """It is counted; where there is nothing else, it is refused."""
    told = read(f"{GOOD}\n{text}\n{GOOD}\n{text}")
    assert len(told.rows) == 2
    assert says in told.left_out
    assert "line 2" in told.left_out
    with pytest.raises(CommandError, match=r"a\.jsonl.* a recording "):
        read(text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "",
            "holds no messages; a recording is a transcript of Amplifier, a session file of Claude Code or Codex, or ",
        ),
        ('{"messages": []}', "a.jsonl holds no messages; a recording is"),
        (
            '{"role": "User"}',
            "only 1 entry in no known form: unknown role 'User'.*did you mean 'user'.*line 1",
        ),
        (
            '[\n{"role": "user"},\n{"role"',
            "as JSON: Expecting ':' delimiter: line 3 column 8 .*; a rec",
        ),
        (GOOD.encode() + "é".encode("latin-1"), "a.jsonl is not in UTF-8 .byte 33.; convert it, as with iconv"),
        ("[" * 100_000, "a.jsonl cannot be read as JSON: maximum recursion depth exceeded .*; a recording is"),
        ("1" * 5_000, "a.jsonl cannot be read as JSON: "),
    ],
)
def test_a_file_that_holds_no_session_is_refused(read, content: str | bytes, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        read(content)


def stored(*names: str) -> None:
    """Sessions in Amplifier's folder, each in a project of its own; its first message is its id."""
    for name in names:
        folder = Path(os.environ["AMPLIFIER_HOME"]) / "projects" / f"of {name}" / "sessions" / name
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_text(json.dumps(user(name)))


def test_an_id_or_its_beginning_names_a_stored_session() -> None:
    """A whole id goes before a longer one that begins so."""
    stored("abc", "abcdef", "b-1")
    for given, name in (("abc", "abc"), ("abcd", "abcdef"), ("b", "b-1")):
        told = open_recording(given)
        assert (told.name, told.rows) == (name, [user(name)])


def test_what_names_several_sessions_or_none_is_refused_with_a_remedy() -> None:
    stored(*(f"ab{at}" for at in range(7)))
    with pytest.raises(CommandError, match=r"ids of 7 sessions begin with 'ab': ab0, .*ab4 and 2 more; give more"):
        open_recording("ab")
    with pytest.raises(CommandError, match=r"there is no file nix, and no session in .* has this id"):
        open_recording("nix")
