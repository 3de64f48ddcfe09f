"""Recordings by file and by the id of a stored session, their lines, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.errors import CommandError
from context_summarize.replay import open_recording
from tests.support.rows import assistant, tool_session, user
from tests.support.views import untimed

GOOD = json.dumps(user("x"))


def write(path: Path, *lines: str | bytes) -> Path:
    """A file of these lines, without an end of the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def stored(name: str, project: str = "work") -> Path:
    """A session in Amplifier's folder; its first message is its id."""
    folder = Path(os.environ["AMPLIFIER_HOME"]) / "projects" / project / "sessions" / name
    return write(folder / "transcript.jsonl", json.dumps(user(name)))


# --- lines ------------------------------------------------------------------------------------------------------------


def test_messages_are_read_a_line_each_and_blank_lines_byte_order_mark_and_crlf_do_not_matter(tmp_path: Path) -> None:
    """A separator of Unicode within a text is no end of a line."""
    rows = [user("hé"), assistant("line\u2028separator")]
    texts = [json.dumps(row, ensure_ascii=False) for row in rows]

    assert (
        open_recording(str(write(tmp_path / "a.jsonl", "\ufeff" + texts[0] + "\r", "", "  \t", texts[1], ""))).rows
        == rows
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "a.jsonl holds no messages; a recording is a transcript of Amplifier, a session file of Claude Code, or "),
        ('{"messages": []}', "a.jsonl holds no messages; a recording is"),
        ('{"role": "User"}', "no messages, but 1 not a message: unknown role 'User'.*did you mean 'user'.*line 1"),
        (
            '[\n{"role": "user"},\n{"role"',
            "a.jsonl is not JSON in UTF-8: Expecting ':' delimiter: line 3 column 8 .*; a rec",
        ),
        (b"\xff\xfe", "a.jsonl is not JSON in UTF-8: .* can't decode byte 0xff in position 0"),
        ("[" * 100_000, "a.jsonl is not JSON in UTF-8: "),
        ("1" * 5_000, "a.jsonl is not JSON in UTF-8: "),
    ],
)
def test_a_file_that_holds_no_session_is_refused(tmp_path: Path, line: str | bytes, says: str) -> None:
    """What was seen, where, and what was expected."""
    with pytest.raises(CommandError, match=says):
        open_recording(str(write(tmp_path / "a.jsonl", line)))


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_last_line_that_is_cut_anywhere_is_left_out_and_named(tmp_path: Path, ascii_only: bool) -> None:
    """Also within a character, an escape, a number or a word."""
    row = {"role": "user", "content": [{"type": "text", "text": 'é "\\ \x01'}], "a": -1.5e30, "b": [True, False, None]}
    last = json.dumps(row, ensure_ascii=ascii_only).encode()

    for end in range(1, len(last)):
        told = open_recording(str(write(tmp_path / "a.jsonl", GOOD, GOOD, last[:end])))
        assert (told.rows, told.left_out) == ([user("x")] * 2, "1 not JSON (first: line 3)")
    whole = open_recording(str(write(tmp_path / "a.jsonl", GOOD, GOOD, last)))
    assert (len(whole.rows), whole.left_out) == (3, "")


def test_the_header_of_a_history_on_disk_is_no_message(tmp_path: Path) -> None:
    """A file of `persistence` can be replayed and inspected as it is."""
    path, rows = tmp_path / "history.jsonl", tool_session(3)

    async def kept() -> None:
        manager = SummarizingContextManager(persistence={"path": str(path)})
        await manager.set_messages(rows)
        await manager.close()

    asyncio.run(kept())
    assert untimed(open_recording(str(path)).rows) == rows


# --- names ------------------------------------------------------------------------------------------------------------


def test_an_id_or_its_beginning_names_a_stored_session() -> None:
    """A whole id goes before a longer one that begins so."""
    for name in ("abc", "abcdef", "b-1"):
        stored(name)

    told = {given: open_recording(given) for given in ("abc", "abcd", "b")}

    assert {given: one.name for given, one in told.items()} == {"abc": "abc", "abcd": "abcdef", "b": "b-1"}
    assert told["b"].rows == [user("b-1")]


def test_what_names_several_sessions_or_none_is_refused_with_a_remedy() -> None:
    """The ids are listed, a few of many."""
    for at in range(7):
        stored(f"ab{at}", project=f"p{at}")

    with pytest.raises(CommandError, match=r"ids of 7 sessions begin with 'ab': ab0, .*ab4 and 2 more; give more"):
        open_recording("ab")
    with pytest.raises(CommandError, match=r"there is no file nix, and no session in .* has this id"):
        open_recording("nix")
