"""Recordings in every form that is read, and what is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize.errors import SessionFileError
from context_summarize.messages.reading import analyse
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.player import Setup, replay
from context_summarize.replay.session_files import parse_recording, parse_session, read_session
from context_summarize.testing import assistant, call, result, tool_session, user

ROWS = [user("Fix the build."), call("c1"), result("c1"), assistant("Done.")]


def read(text: str) -> list[dict[str, Any]]:
    return parse_session(text.encode(), "a")


# --- documents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("around", [lambda rows: rows, lambda rows: {"messages": rows, "model": "m"}])
def test_an_array_and_an_object_of_messages_are_read_on_one_line_and_on_many(indent, around):
    assert read(json.dumps(around(ROWS), indent=indent)) == ROWS
    assert read("\ufeff\n  " + json.dumps(around(ROWS), indent=indent) + "\n\n") == ROWS


def test_the_system_text_of_a_request_is_the_first_message():
    """Anthropic's requests carry it beside the messages."""
    rows = read(json.dumps({"system": "Be brief.", "messages": [user("x")]}))

    assert rows == [{"role": "system", "content": "Be brief."}, user("x")]


def test_one_message_alone_is_a_session_however_it_is_written():
    assert read(json.dumps(user("x"))) == read(json.dumps(user("x"), indent=2)) == [user("x")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "a holds no messages; expected one JSON message per line, a JSON array"),
        ('{"messages": []}', "a holds no messages"),
        ('{"messages": null}', "a is an object of messages; expected"),
        ('{"messages": {"role": "user"}}', "a is an object of messages; expected"),
        ('{\n"mapping": {}\n}', "a is an object of mapping; expected"),
        ('[{"role": "user", "content": "x"},\n{"role": "robot"}]', "a, message 2 is not a message: unknown role"),
        ('[{"role": "user"},\n{"role": ]', r"a, line 2 is not JSON: Expecting value \(column 10\); expected"),
        ('{"messages": [1]}', "a, message 1 is not a message: a message must be a dict, got int"),
        ('{"title": "x"}', "a, line 1 is not a message: a message must have a role; expected one of .*; expected one "),
        ("id,text\n1,hello", "a, line 1 is not JSON: Expecting value"),
        ("<html>", "a, line 1 is not JSON"),
        ('"text"', "a, line 1 is not a message"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place_and_a_remedy(text, says):
    with pytest.raises(SessionFileError, match=says):
        read(text)


def test_a_byte_that_is_no_utf_8_is_named_by_its_line_in_a_document_too():
    with pytest.raises(SessionFileError, match="a, line 2 is not UTF-8; save the file as UTF-8"):
        parse_session(b'[\n"\xff"]', "a")


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\n messagerolt1', max_size=80).map(str.encode))
def test_any_bytes_give_messages_or_one_error(data):
    """Nothing else is raised, whatever a file holds."""
    try:
        assert parse_session(data, "a")
    except SessionFileError:
        pass


def test_a_name_that_no_disk_can_hold_is_one_error():
    with pytest.raises(SessionFileError, match="cannot be read"):
        read_session(Path("a\0b"))


def test_an_object_of_other_keys_is_refused_with_those_that_it_has_and_those_that_it_needs():
    with pytest.raises(SessionFileError, match=r"this object has msgs, not role and content .* or messages"):
        read('{"msgs": []}')
    with pytest.raises(SessionFileError, match=r"this object has no keys, not role"):
        read("{}")
    with pytest.raises(SessionFileError, match=r"expected .*; messages is a dict, not a list"):
        read('{"messages": {}}')


# --- a file that is still being written -----------------------------------------------------------------------------


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_last_line_that_is_cut_anywhere_is_left_out_with_one_remark(ascii_only):
    """Also within a character, an escape, a number or a word."""
    row = {"role": "user", "content": [{"type": "text", "text": 'é "\\ \x01'}], "a": -1.5e30, "b": [True, False, None]}
    lines = [json.dumps(each, ensure_ascii=ascii_only).encode() for each in (*ROWS, row)]

    for end in range(1, len(lines[-1])):
        told = parse_recording(b"\n".join([*lines[:-1], lines[-1][:end]]), "a.jsonl", "a")
        assert told.rows == ROWS, lines[-1][:end]
        assert told.remarks == (
            "a.jsonl, line 5 is cut off, as in a file that is still being written; the lines before it are read",
        )
    whole = parse_recording(b"\n".join(lines), "a.jsonl", "a")
    assert (len(whole.rows), whole.remarks) == (5, ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"role": "user"', "a, line 1 is not JSON"),
        (json.dumps(user("x")) + '\n{"role": "us\n', "a, line 2 is not JSON: Unterminated string"),
        (json.dumps(user("x")) + '\n{"role": "us\n' + json.dumps(user("y")), "a, line 2 is not JSON: Unterminated"),
        (json.dumps(user("x")) + "\n[1", "a, line 2 is not JSON"),
        (json.dumps(user("x")) + "\nhello", "a, line 2 is not JSON"),
        (json.dumps(user("x")) + '\n{role: "', "a, line 2 is not JSON: Expecting property name"),
        (json.dumps(user("x")) + '\n{"role": "robot"}', "a, line 2 is not a message: unknown role"),
        (json.dumps([user("x")])[:-1], "a, line 1 is not JSON"),
    ],
)
def test_any_other_damage_is_refused_with_its_line(text, says):
    """The only line, a line with its end, a line in the middle, what begins no object, a whole value."""
    with pytest.raises(SessionFileError, match=says):
        read(text)


def test_a_byte_that_is_no_utf_8_is_damage_also_at_the_end():
    with pytest.raises(SessionFileError, match=r"a, line 2 is not UTF-8 \(byte 3\)"):
        parse_session(json.dumps(user("x")).encode() + b'\n{"\xff', "a")


# --- Claude Code ----------------------------------------------------------------------------------------------------


def line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **{key: more.pop(key) for key in ("id",) if key in more}}
    return {"type": kind, "uuid": "u", "sessionId": "s", "isSidechain": False, "message": message, **more}


def tool_use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "make"}}


def tool_result(call_id: str, text: Any = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


SESSION = [
    {"type": "summary", "summary": "An earlier session", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    line("user", "Caveat: local commands", isMeta=True),
    line("user", "Fix the build."),
    line("assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}], id="msg_1"),
    line("assistant", [{"type": "text", "text": "I look."}], id="msg_1"),
    line("assistant", [tool_use("t1")], id="msg_1"),
    line("user", "a sub-agent's task", isSidechain=True),
    line("user", [tool_result("t1", [{"type": "text", "text": "boom"}])], toolUseResult={"stdout": "boom"}),
    line("assistant", [tool_use("t2")], id="msg_1"),
    {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"},
    line("user", "This session is being continued …", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    line("user", [tool_result("t2")]),
    {"type": "progress", "data": {"message": {"type": "user"}}},
    line("assistant", "API Error: 500", isApiErrorMessage=True),
    line("assistant", [], id="msg_9"),
    line("assistant", [{"type": "text", "text": "It is fixed."}], id="msg_2"),
]


def test_a_session_of_claude_code_is_its_conversation_and_nothing_else():
    """Blocks of one answer make one row, before all of its results."""
    rows = read("\n".join(map(json.dumps, SESSION)))

    assert [row["role"] for row in rows] == ["user", "assistant", "user", "user", "assistant"]
    assert [call.id for call in analyse(rows[1]).calls] == ["t1", "t2"]
    assert [analyse(row).result_ids for row in rows[2:4]] == [("t1",), ("t2",)]
    assert [block["type"] for block in rows[1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert rows[4]["content"] == [{"type": "text", "text": "It is fixed."}]


def test_parts_of_an_answer_with_another_message_between_them_stay_where_they_stand():
    """Results between them are no other message."""
    lines = [
        line("user", "Fix the build."),
        line("assistant", [tool_use("t1")], id="msg_1"),
        line("user", [tool_result("t1")]),
        line("user", "Wait."),
        line("assistant", [{"type": "text", "text": "I wait."}], id="msg_1"),
        line("assistant", [{"type": "text", "text": "Yes."}], id="msg_2"),
        line("assistant", [{"type": "text", "text": "Go on?"}], id="msg_1"),
    ]

    told = parse_recording("\n".join(map(json.dumps, lines)).encode(), "a", "a")

    assert [row["role"] for row in told.rows] == ["user", "assistant", "user", "user", *["assistant"] * 3]
    assert [len(row["content"]) for row in told.rows[4:]] == [1, 1, 1]
    assert told.remarks == (
        "2 parts of answers stand apart from the earlier parts, other messages between them (the first is message 5); "
        "each is kept where it stands, as a message of its own",
    )
    assert parse_recording("\n".join(map(json.dumps, SESSION)).encode(), "a", "a").remarks == ()


async def test_a_session_of_claude_code_is_replayed_and_every_check_passes():
    """Also through compactions, and with parallel calls whose results came one by one."""
    lines = []
    for turn in range(60):
        lines += [
            line("user", f"Look at order ORD{turn:05d}."),
            line("assistant", [tool_use(f"a{turn}")], id=f"m{turn}"),
            line("user", [tool_result(f"a{turn}", "value " * 100)]),
            line("assistant", [tool_use(f"b{turn}")], id=f"m{turn}"),
            line("user", [tool_result(f"b{turn}", "value " * 100)]),
            line("assistant", [{"type": "text", "text": f"Order {turn} is shipped."}], id=f"n{turn}"),
        ]
    rows = read("\n".join(map(json.dumps, lines)))
    provider = OfflineProvider(lambda text: len(text) // 4, context_window=8_000, max_output_tokens=1_000)

    told = await replay(rows, Setup(provider=provider, name="offline"))

    assert len(told.boundaries) >= 3
    assert told.failed is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (line("user", {"a": 1}) | {"message": "text"}, "a, line 2 is not a message: a message must be a dict, got str"),
        (
            line("user", "x") | {"message": {"role": "robot", "content": "x"}},
            "a, line 2 is not a message: unknown role",
        ),
        ({"type": "user"}, "a, line 2 is not a message"),
    ],
)
def test_a_line_of_claude_code_that_holds_no_message_is_refused(value, says):
    with pytest.raises(SessionFileError, match=says):
        read("\n".join(map(json.dumps, [line("user", "x"), value])))


def test_a_file_of_notes_alone_holds_no_messages():
    with pytest.raises(SessionFileError, match="a holds no messages"):
        read(json.dumps(SESSION[0]))


def test_a_session_of_the_loops_is_read_as_it_is():
    """Rows with a type of their own are messages where they have a role."""
    rows = [{**row, "type": "message"} for row in tool_session(3)]

    assert read("\n".join(map(json.dumps, rows))) == rows
