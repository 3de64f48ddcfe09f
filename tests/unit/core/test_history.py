"""The history: rows counted once, numbers that hosts' filtering does not move, segments, node addresses."""

from __future__ import annotations

import json

from context_summarize.core.history import History
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import assistant, call, hook, result, user

SYSTEM = {"role": "system", "content": "be kind"}


def history_of(rows: list[JsonRow]) -> History:
    history = History()
    for raw in rows:
        history.add(analyse(normalise(raw)))
    return history


def saved(rows: list[JsonRow]) -> list[JsonRow]:
    """Rows as a host saves them: no system, developer or hook rows, no thinking, no None values; through JSON."""
    kept: list[JsonRow] = []
    for row in rows:
        metadata = row.get("metadata") or {}
        if row["role"] in ("system", "developer") or metadata.get("source") == "hook":
            continue
        content = row.get("content")
        if isinstance(content, list):
            content = [block for block in content if block.get("type") != "thinking"]
        kept.append({k: v for k, v in {**row, "content": content}.items() if v is not None and k != "thinking_block"})
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


MIXED: list[JsonRow] = [
    SYSTEM,
    user("one"),
    hook("note"),
    call("a", text="two"),
    hook("between"),
    result("a", "three"),
    hook("after"),
    {"role": "developer", "content": "rule"},
    assistant("four"),
    user("five"),
]
"""History rows 0 … 9; rendered groups: [1], [3, 6), [8], [9]."""


def test_rows_are_numbered_as_hosts_save_them() -> None:
    """Hook and system rows have no number, within groups too, and move none; nor has a row of an open call."""
    history, other = history_of([*MIXED, call("open", "lookup")]), history_of(saved(MIXED))
    numbers = [history.number_of(at) for at in range(len(MIXED))]
    assert [number for number in numbers if number is not None] == [other.number_of(at) for at in range(len(other))]
    assert [numbers[at] for at in (0, 1, 3, 4, 5)] == [None, 1, 2, None, 3]
    assert history.number_of(len(MIXED)) is None


class TestRunningHashes:
    def test_what_hosts_drop_or_add_does_not_count(self) -> None:
        """A saved and read history is the same conversation."""
        whole = history_of(MIXED).running_hashes("s", 4)
        blocks = [
            {**r, "content": [{"type": "text", "text": r["content"]}]} if r["role"] == "user" else r for r in MIXED
        ]
        marked = [{**row, "metadata": {**(row.get("metadata") or {}), "x": 1}} for row in MIXED]
        for rows in (saved(MIXED), blocks, marked):
            assert history_of(rows).running_hashes("s", 4) == whole
