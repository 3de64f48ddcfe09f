"""The history: rows counted once, numbers that hosts' filtering does not move, segments, node addresses."""

from __future__ import annotations

import json

from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import assistant, call, hook, result, tool_session, user

SYSTEM = {"role": "system", "content": "be kind"}


def count(text: str) -> int:
    """A token is a word."""
    return len(text.split())


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


class TestNumbers:
    def test_message_range_counts_rendered_rows_from_one(self) -> None:
        """System, developer and hook rows have no number."""
        history = history_of(MIXED)
        assert history.message_range(0, 1) == (1, 1)
        assert history.message_range(0, 2) == (1, 3)
        assert history.message_range(1, 3) == (2, 4)
        assert history.message_range(0, 4) == (1, 5)


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


def cut(rows: list[JsonRow], sizes: tuple[int, int] | None = None, first_group: int = 0) -> NodeBuilder:
    """A history cut into segments of these sizes; none without."""
    builder = NodeBuilder(history_of(rows), "s", "m", None)
    if sizes:
        builder.start(*sizes, first_group)
        builder.advance()
    return builder


def test_a_segment_that_ends_early_needs_sizes_and_more_rows_than_its_summary() -> None:
    """Cutting goes on behind it."""
    builder = cut([*tool_session(4), user("short"), assistant("too")], (128, 48))
    groups = len(builder.history.rendered)
    assert builder.remainder(groups - 2, groups) is None
    assert cut(tool_session(4)).remainder(0, 4) is None
    node = builder.remainder(0, 5)
    assert node is not None
    assert (node.level, node.first_group, node.end_group, node.children) == (0, 0, 5, ())
    builder.go_on_from(5)
    builder.advance()
    assert builder.leaves[0].first_group == 5
