"""What calls did, read from the names of their arguments and the shape of their results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_summarize.config import ToolKind
from context_summarize.notes.actions import Actions
from context_summarize.transcript.rows import RenderedRow, call_line

FAILED, TESTS, EDITED = "Failed commands: ", "Tests, last result: ", "Edited files: "


def told(*calls: tuple[str, Any, str], tools: dict[str, ToolKind] | None = None) -> dict[str, list[str]]:
    """What these calls with their results come to."""
    actions = Actions(tools or {})
    for at, (name, arguments, result) in enumerate(calls):
        text = call_line(name, json.dumps(arguments))
        rows = [RenderedRow(2 * at + 1, "assistant", None, text), RenderedRow(2 * at + 2, "tool", name, result)]
        actions.read(rows)
    return dict(actions.lines())


def ran(command: str, result: str) -> dict[str, list[str]]:
    return told(("bash", {"command": command}, result))


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}),
        ("mcp__files__change", {"target_file": "a.py", "code_edit": "y"}),
        ("functions.Write", {"file_path": "a.py", "content": ""}),
        ("create", {"filename": "a.py"}),
        ("str_replace_based_edit_tool", {"command": "insert", "path": "a.py", "insert_line": 3}),
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("deleteFile", {"filePath": "a.py"}),
    ],
)
def test_an_edit_is_told_by_its_path_whatever_the_tool_is_called(name: str, arguments: Any) -> None:
    assert told((name, arguments, "ok"))[EDITED] == ["a.py"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"file_path": "a.py"}),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}),
        ("search", {"path": "a.py", "text": "x"}),
        ("create_ticket", {"title": "x", "content": "y"}),
        ("delete_booking", {"id": "X"}),
    ],
)
def test_reading_and_what_touches_no_file_is_no_edit(name: str, arguments: Any) -> None:
    assert told((name, arguments, "ok"))[EDITED] == []


@pytest.mark.parametrize(
    ("result", "edited"),
    [
        ("Error budgets.md replaced", True),
        ('{"file_path": "a.py", "replacements_made": 1}', True),
        ("Error: old_string not found", False),
        ("<tool_use_error>File has not been read yet</tool_use_error>", False),
        ('{"replaced": 0, "error": "no such text"}', False),
        ('{"path": "a.py", "success": false}', False),
    ],
)
def test_an_edit_counts_unless_its_result_says_that_it_failed(result: str, edited: bool) -> None:
    call = ("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}, result)

    assert bool(told(call)[EDITED]) is edited


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("make > build.log 2>&1 && echo done >>notes.md", ["notes.md", "build.log"]),
        ("cat > a.py <<'EOF'\nif a > b:\n    pass\nEOF\nls", ["a.py"]),
        ("sed -i '' 's|x|y > z|' src/a.ts; git diff", ["src/a.ts"]),
        ('echo "a -> b.txt"', []),
        ("echo a -> b.txt", []),
        ("echo hi 2> err.log", []),
        ("ls > /dev/null; cat a.txt | grep '>' x", []),
    ],
)
def test_a_shell_command_edits_what_it_writes_to(command: str, files: list[str]) -> None:
    assert ran(command, "")[EDITED] == files


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ('{"stdout": "", "stderr": "no rule", "returncode": 2}', "exit 2: no rule"),
        ("Exit code: 1\nloading\nValueError: no such column\n", "exit 1: ValueError: no such column"),
        (
            "src/a.ts(3,9): error TS2304: no name 'x'\n\nCommand exited with code 2",
            "exit 2: src/a.ts(3,9): error TS2304",
        ),
        ("compiling\nmain.c:3:5: error: expected ';'\n1 error generated", "main.c:3:5: error: expected ';'"),
        ("Traceback (most recent call last):\n  File 'a.py'\nclient.Timeout: no answer", "client.Timeout: no answer"),
        ("cp: b.json: No such file or directory", "cp: b.json: No such file"),
        ('{"error": {"message": "timeout"}, "success": false}', "timeout"),
    ],
)
def test_a_failed_command_is_told_with_its_failure(result: str, why: str) -> None:
    [line] = ran("build x", result)[FAILED]

    assert line.startswith("`build x` → ")
    assert why in line


@pytest.mark.parametrize(
    "result",
    [
        '{"returncode": 0, "stdout": "exit code 1 means failure"}',
        '{"returncode": 0, "stdout": "", "stderr": "error: only a warning"}',
        "exit code 1 means failure",
        "36:func open() (error)\nsrc/a.go:7: return errors.New(x)",
        "all is well",
        "",
    ],
)
def test_a_command_that_ended_well_or_prints_about_errors_has_not_failed(result: str) -> None:
    assert ran("show x", result)[FAILED] == []


@pytest.mark.parametrize(
    ("command", "result", "outcome"),
    [
        ("pytest -q", "....F\n==== 1 failed, 4 passed in 0.1s ====", "1 failed, 4 passed in 0.1s"),
        ("python -m unittest", "Ran 3 tests in 0.1s\n\nOK", "OK"),
        ("npm run test:unit", "Tests:       1 failed, 3 passed, 4 total", "Tests: 1 failed, 3 passed"),
        ("cd a && make test", '{"stdout": "3 passed", "returncode": 0}', "3 passed"),
        ("go test ./...", "--- FAIL: TestX (0.0s)\nFAIL\nok   a/b 0.2s\nexit code 1", "exit 1: --- FAIL: TestX"),
    ],
)
def test_a_test_run_is_told_with_its_result(command: str, result: str, outcome: str) -> None:
    [line] = ran(command, result)[TESTS]

    assert f"`{command}`" in line
    assert outcome in line


def test_the_setting_comes_before_what_arguments_say() -> None:
    calls = [
        ("deploy", {"stage": "live"}, "exit code 3"),
        ("save_note", {"path": "a.md"}, "ok"),
        ("bash", {"command": "x"}, "exit code 1"),
    ]
    lines = told(*calls, tools={"deploy": "command", "save_note": "write", "bash": "none"})

    assert lines[FAILED] == ['`deploy {"stage": "live"}` → exit 3']
    assert lines[EDITED] == ["a.md"]
