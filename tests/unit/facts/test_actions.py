"""What calls did, read from their arguments and results; and the lines that it is folded into."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from context_summarize.facts.action_ledger import ActionLedger, format_sections
from context_summarize.facts.action_tools import kind_of
from context_summarize.facts.actions import Action, ActionReader, Answered
from hypothesis import given, settings
from hypothesis import strategies as st

from context_summarize.messages.rows import Call
from context_summarize.redaction import build_redactor
from context_summarize.tokens.counter import TokenCounter
from tests.support.effort import SMALL_EXAMPLES

COUNT = TokenCounter().count


def read(name: str, arguments: Any, result: str | None = "ok", **known: Any) -> list[Action]:
    return list(ActionReader(known, None).read(Answered(Call("c1", name, arguments), result), 7))


def folded(actions: Iterable[Action]) -> dict[str, tuple[str, ...]]:
    ledger = ActionLedger()
    for action in actions:
        ledger.add(action)
    return {section.title: section.items for section in ledger.sections() if section.items}


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("read_file", {"file_path": "a.py"}, "read"),
        ("mcp__files__readFile", {"path": "a.py"}, "read"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, "read"),
        ("text_editor_20250728", {"command": "str_replace", "path": "a.py", "old_str": "a"}, "edit"),
        ("Write", {"file_path": "a.py", "content": ""}, "write"),
        ("functions.apply_patch", "*** Begin Patch", "edit"),
        ("Bash", {"command": "ls"}, "command"),
        ("grep", {"pattern": "x"}, "search"),
        ("delegate", {"agent": "explorer"}, "delegate"),
        ("cancel_reservation", {"id": "X"}, "change"),
        ("remove_document", {"path": "a.md"}, "delete"),
        ("get_user", {"id": "X"}, "none"),
    ],
)
def test_a_tool_is_known_by_its_name_or_its_arguments(name: str, arguments: Any, kind: str) -> None:
    assert kind_of(name, arguments if isinstance(arguments, dict) else {}, {}) == kind


@pytest.mark.parametrize(
    ("result", "failed", "outcome"),
    [
        ('{"stdout": "", "stderr": "no rule", "returncode": 2}', True, "exit 2"),
        ('{"stdout": "fine", "stderr": "", "returncode": 0}', False, "exit 0"),
        ("Exit code: 1\nValueError: no such column", True, "exit 1: ValueError: no such column"),
        ("all is well", False, ""),
    ],
)
def test_a_command_tells_its_status(result: str, failed: bool, outcome: str) -> None:
    [action] = read("bash", {"command": "make x"}, result)

    assert (action.failed, action.outcome) == (failed, outcome)


@pytest.mark.parametrize(
    ("command", "result", "told"),
    [
        ("pytest -q", "....F\n==== 1 failed, 4 passed in 0.1s ====", "1 failed, 4 passed in 0.1s"),
        ("python -m unittest", "Ran 3 tests in 0.1s\n\nOK", "OK"),
        ("npm test", "Tests:       1 failed, 3 passed, 4 total", "Tests:       1 failed, 3 passed, 4 total"),
        ("cd a && make test", '{"stdout": "3 passed", "returncode": 0}', "exit 0: 3 passed"),
    ],
)
def test_a_test_command_tells_its_figures(command: str, result: str, told: str) -> None:
    [action] = read("bash", {"command": command}, result)

    assert action.outcome == " ".join(told.split())


def test_files_are_told_by_what_became_of_them() -> None:
    reader = ActionReader({}, None)
    calls = [
        ("read_file", {"path": "seen.py"}, "text"),
        ("read_file", {"path": "a.py"}, "text"),
        ("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}, "ok"),
        ("edit_file", {"path": "a.py", "old_string": "y", "new_string": "z"}, "ok"),
        ("write_file", {"path": "new.py", "content": "x"}, "ok"),
        ("write_file", {"path": "gone.py", "content": "x"}, "ok"),
        ("bash", {"command": "git rm -f gone.py && ls"}, "ok"),
        ("edit_file", {"path": "miss.py", "old_string": "x", "new_string": "y"}, "Error: old_string not found"),
        ("open", {"path": "swe.py"}, "[File: /repo/swe.py (10 lines total)]"),
        ("edit", {"search": "a", "replace": "b"}, "Text replaced."),
    ]
    actions = [
        action
        for number, (name, given, result) in enumerate(calls, start=1)
        for action in reader.read(Answered(Call(str(number), name, given), result), number)
    ]
    told = folded(actions)

    assert told["Edited"] == ("/repo/swe.py (#10)", "a.py (2×, #4)")
    assert told["Created"] == ("new.py (#5)",)
    assert told["Deleted"] == ("gone.py (#7)",)
    assert told["Edits that failed"] == ("miss.py (#8)",)
    assert told["Read"] == ("swe.py (#9)", "seen.py (#1)")


@pytest.mark.parametrize("result", ["", "No matches found", '{"total_matches": 0, "matches": []}'])
def test_a_search_that_found_nothing_is_told(result: str) -> None:
    assert [a.what for a in read("grep", {"pattern": "frob"}, result)] == ["frob"]
    assert read("grep", {"pattern": "frob"}, "a.py:3: frob()") == []


def test_a_command_that_failed_once_stays_told() -> None:
    failing = Action("ran", "make", 1, True, "exit 2")

    assert folded([failing])["Failed commands"] == ("`make` → exit 2 (#1)",)
    later = folded([failing, Action("ran", "make", 5, False, "exit 0")])
    assert later["Failed commands"] == ("`make` → exit 2, later exit 0 (2×, #5)",)


def test_work_without_a_result_is_open_until_its_end_is_seen() -> None:
    [waiting] = read("delegate", {"agent": "explorer", "instruction": "find it"}, None)
    [job] = read("bash", {"command": "serve"}, '{"status": "running", "job_id": "j-9"}')
    ledger = ActionLedger()
    ledger.add(waiting)
    ledger.add(job)

    assert ledger.sections()[0].items == ("delegate explorer (c1, #7)", "serve (j-9, #7)")
    ledger.close("j-9")
    assert ledger.sections(("host job",))[0].items == ("host job", "delegate explorer (c1, #7)")


def test_no_secret_is_told() -> None:
    reader = ActionReader({}, build_redactor(True))
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    command = f"curl -H 'Authorization: token {secret}' https://example.com"
    [action] = reader.read(Answered(Call("c", "bash", {"command": command}), f"exit 1\nValueError: {secret}"), 1)

    assert secret not in action.what + action.outcome
    assert "curl" in action.what


ACTIONS = st.builds(
    Action,
    verb=st.sampled_from(["read", "created", "edited", "deleted", "ran", "searched", "delegated", "changed"]),
    what=st.text(max_size=40),
    number=st.integers(1, 9_999),
    failed=st.booleans(),
    outcome=st.text(max_size=40),
    tool=st.sampled_from(["", "a", "b"]),
    job=st.sampled_from(["", "", "", "j1", "j2"]),
)


@settings(max_examples=SMALL_EXAMPLES)
@given(st.lists(ACTIONS, max_size=60), st.integers(0, 400))
def test_the_lines_keep_to_their_room(actions: list[Action], room: int) -> None:
    ledger = ActionLedger()
    for action in actions:
        ledger.add(action)

    text = format_sections(ledger.sections(), room, COUNT)

    assert COUNT(text) <= room
    if actions and room == 400:
        assert text
