"""`inspect`: what a recording holds; nothing is replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.cli import EXAMPLE, plain_terminal, store  # noqa: F401
from tests.support.cli import call as run
from tests.support.rows import assistant, call, result, user


def inspected(*arguments: object) -> dict[str, Any]:
    """What `inspect --json` prints."""
    told = run("inspect", *arguments, "--json")
    assert (told.exit_code, told.stderr) == (0, ""), told.output
    data: dict[str, Any] = json.loads(told.stdout)
    return data


def test_the_example_is_told_by_roles_tools_and_largest_rows() -> None:
    """The parts add up."""
    data = inspected(EXAMPLE)

    assert data.keys() == {
        *("file", "rows", "messages", "tokens", "unanswered_calls", "orphan_results", "roles", "tools", "largest"),
    }
    assert (data["file"], data["rows"], data["messages"], data["tokens"]) == (EXAMPLE.name, 1_335, 1_334, 120_073)
    assert sum(role["rows"] for role in data["roles"]) == data["rows"]
    assert sum(role["tokens"] for role in data["roles"]) == data["tokens"]
    assert data["largest"][0] == {"message": 189, "tokens": 2_408, "role": "tool", "tool": "search_onestop_flight"}
    assert {"message": "", "tokens": 1_251, "role": "system", "tool": ""} in data["largest"], "the host's, unnumbered"
    assert data["tools"][3] == {"tool": "calculate", "calls": 19, "results": 19, "tokens": 120}
    assert (data["unanswered_calls"], data["orphan_results"]) == ([], 0)


def test_broken_pairs_are_counted_and_named(tmp_path: Path) -> None:
    """A call at the end may still get its result."""
    rows = [user("a"), call("1", "look"), user("b"), call("2", "list"), assistant("c"), call("3", "late")]
    whole = [user("a"), call("1"), result("1"), call("2")]
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "x"}]}

    broken = inspected(store(tmp_path / "a.jsonl", [*rows, orphan]))
    told = run("inspect", tmp_path / "a.jsonl").stdout

    assert broken["unanswered_calls"][:2] == ["look in message 2", "list in message 4"]
    assert broken["orphan_results"] == 1
    assert "calls without a result: look in message 2, list in message 4" in told
    assert "1 result without a call." in told
    host = {"role": "system", "content": "Be kind."}
    assert inspected(store(tmp_path / "c.jsonl", [host, *rows]))["unanswered_calls"] == broken["unanswered_calls"]
    fine = inspected(store(tmp_path / "b.jsonl", whole))
    assert (fine["unanswered_calls"], fine["orphan_results"]) == ([], 0)
