"""Finding recordings: by id and its beginning, by folder, by file; and the list of what is stored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from context_summarize.errors import SessionFileError
from context_summarize.replay.stored_sessions import find_session, open_recording, sketch, stored_sessions
from context_summarize.testing import tool_session, user


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Folders of programs, empty, and a folder to work in."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "amplifier"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path


def stored(home: Path, name: str, rows: list, *, age: float = 0, project: str = "-work") -> Path:
    path = home / "amplifier" / "projects" / project / "sessions" / name / "transcript.jsonl"
    return written(path, rows, age)


def coded(home: Path, name: str, rows: list, age: float = 0) -> Path:
    lines = [{"type": row["role"], "message": row, "isSidechain": False} for row in rows]
    return written(home / "claude" / "projects" / "-work" / f"{name}.jsonl", lines, age)


def written(path: Path, rows: list, age: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    os.utime(path, (1_800_000_000 - age, 1_800_000_000 - age))
    return path


ROWS = tool_session(2)


def test_sessions_of_all_projects_are_listed_newest_first(home):
    stored(home, "old", ROWS, age=50)
    stored(home, "new", ROWS, age=1, project="-other")
    stored(home, "empty", [])
    (home / "amplifier" / "projects" / "-work" / "sessions" / "none").mkdir()
    coded(home, "coded", ROWS)

    assert [session.id for session in stored_sessions()] == ["new", "old"]
    assert [session.id for session in stored_sessions("claude-code")] == ["coded"]


def test_without_a_folder_there_are_no_sessions():
    assert stored_sessions() == stored_sessions("claude-code") == []


def test_a_sketch_counts_messages_and_begins_with_the_users_words(home):
    rows = [{"role": "system", "content": "rules"}, user([{"type": "text", "text": "Fix\n the  build " * 90}]), *ROWS]
    path = stored(home, "one", rows)
    path.write_bytes(path.read_bytes() + b"\n\n")

    found = sketch(stored_sessions()[0])

    assert (found.messages, found.bytes) == (10, path.stat().st_size)
    assert found.first_words.startswith("Fix the build Fix the build")
    assert len(found.first_words) == 200


def test_a_sketch_of_claude_code_counts_the_conversation_alone(home):
    path = coded(home, "one", [ROWS[0], ROWS[3]])
    path.write_text(json.dumps({"type": "summary", "summary": "s"}) + "\n" + path.read_text("utf-8"), "utf-8")

    found = sketch(stored_sessions("claude-code")[0])

    assert found.messages == 2
    assert found.first_words.startswith("Please look up order")


def test_a_sketch_counts_as_many_messages_as_a_replay_reads(home):
    """Parts of one answer of Claude Code are one message; a line that is cut off at the end is none."""
    path = coded(home, "coded", [ROWS[0], *[{**ROWS[3], "id": "m1"}] * 3, ROWS[0], ROWS[3]])
    amplifier = stored(home, "one", ROWS)
    for file in (path, amplifier):
        file.write_bytes(file.read_bytes() + b'{"role": "us')

    for [session], count in ((stored_sessions("claude-code"), 4), (stored_sessions(), len(ROWS))):
        assert sketch(session).messages == len(open_recording(session.id).rows) == count


@pytest.mark.parametrize(
    "hostile", [b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"role": "user", "content": 5}\n', b"{}\n"]
)
def test_a_sketch_of_a_damaged_file_is_no_error(home, hostile):
    path = stored(home, "one", ROWS)
    path.write_bytes(hostile + path.read_bytes())

    assert sketch(stored_sessions()[0]).messages >= len(ROWS)


# --- names ----------------------------------------------------------------------------------------------------------


def test_an_id_or_its_beginning_names_a_session(home):
    stored(home, "abc-1", ROWS)
    stored(home, "abd-2", ROWS[:4])
    coded(home, "xyz", ROWS[:4])

    assert open_recording("abd").rows == ROWS[:4]
    assert (open_recording("abc-1").name, open_recording("abc-1").rows) == ("abc-1", ROWS)
    assert open_recording("xy").name == "xyz"


def test_a_whole_id_goes_before_a_longer_one_that_begins_so(home):
    """A sub-agent's session begins with the id of its parent."""
    stored(home, "abc", ROWS[:4])
    stored(home, "abc-child", ROWS)

    assert find_session("abc").id == "abc"


def test_a_beginning_that_several_share_is_refused_with_their_ids(home):
    for at in range(7):
        stored(home, f"abc-{at}", ROWS, age=at)

    with pytest.raises(SessionFileError, match=r"7 sessions begin with 'abc': abc-0, .*abc-4 and 2 more; give more"):
        open_recording("abc")


def test_what_names_nothing_is_refused_with_the_command_that_lists(home):
    with pytest.raises(SessionFileError, match="nix is neither a file nor a stored session; `context-summarize sess"):
        open_recording("nix")
    with pytest.raises(SessionFileError, match="the name of the session is empty"):
        open_recording("")
    with pytest.raises(SessionFileError, match="nix/a cannot be read: No such file"):
        open_recording("nix/a")
    with pytest.raises(SessionFileError, match=r"nix\.jsonl cannot be read"):
        open_recording("nix.jsonl")


@pytest.mark.parametrize("name", ["..", "../..", "*", "?", "a\0b", "x" * 5_000, "%s", "\ud800", ""])
def test_an_odd_name_is_one_error(home, name):
    """An id is compared, and never becomes a pattern or a path."""
    stored(home, "abc", ROWS)
    with pytest.raises(SessionFileError):
        open_recording(name)


def test_a_file_goes_before_a_session_of_its_name(home):
    stored(home, "abc", ROWS)
    written(Path("abc"), ROWS[:4], 0)

    assert open_recording("abc").rows == ROWS[:4]


# --- folders --------------------------------------------------------------------------------------------------------


def test_a_folder_is_its_transcript_or_its_only_session(home):
    path = stored(home, "abc", ROWS)
    written(path.parent / "events.jsonl", [{"event": "x"}], 0)
    alone = written(home / "alone" / "session.jsonl", ROWS, 0)

    assert (open_recording(str(path.parent)).name, open_recording(str(path.parent)).rows) == ("abc", ROWS)
    assert open_recording(str(path.parents[2])).name == "abc"
    assert open_recording(str(alone.parent)).name == "session.jsonl"


def test_a_folder_of_several_or_none_is_refused(home):
    stored(home, "abc", ROWS)
    path = stored(home, "abd", ROWS)

    with pytest.raises(SessionFileError, match=r"2 sessions: sessions/abc/transcript\.jsonl, .*; name one of them"):
        open_recording(str(path.parents[2]))
    with pytest.raises(SessionFileError, match=r"is a directory without transcript\.jsonl and without"):
        open_recording(str(home))
