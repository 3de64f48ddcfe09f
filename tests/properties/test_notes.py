"""For every history: notes are read and written without an error, and within their room."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.notes.reader import Notes
from context_summarize.transcript.rows import RenderedRow

KEYS = st.sampled_from(["id", "user_id", "link", "total", "items", "path", "command", "note", ""])
VALUES = st.sampled_from(["a1", "K-9001", "https://x.org/z(1)", "src/a.py:3", "12,000", "never push", "2024-05-01"])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | VALUES | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
PIECES = st.sampled_from(
    ["{{name}}", "{{'a': 1}}", "{[1]: 2}", "[", "{",
     '"', "\\", "```\n", "> ", "- ", "Rules: ", "\n", " ", "label: K-1.",
     "Never push to main. ", "Is it ok? ", 'call bash({"command": "ls > a.txt"})\n', "exit code 1\n", "\u2028", "\x00"]
)  # fmt: skip
TEXTS = st.one_of(
    DATA.map(json.dumps),
    DATA.map(repr),
    DATA.map(lambda data: f"call lookup({json.dumps(data)})"),
    st.lists(PIECES | st.text(max_size=12) | VALUES, max_size=12).map("".join),
)
ROWS = st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS)


def count(text: str) -> int:
    return len(text) // 4 + 1


@given(st.lists(ROWS, max_size=14), st.integers(-50, 600), TEXTS, st.booleans())
def test_notes_of_any_history_are_written_within_their_room(
    given_rows: list[tuple[str, str]], room: int, summary: str, goes_on: bool
) -> None:
    notes = Notes(count, {}, ("^never", "always"))
    rows = [RenderedRow(at, role, None, text) for at, (role, text) in enumerate(given_rows, 1)]
    for row in rows:
        notes.read([row])
    notes.values.mention(summary)
    notes.verify(summary.split("\n"), [(row.number, row.said) for row in rows if row.role == "user"])
    text = notes.written(room, summary, 100, ["a job"], goes_on=goes_on)

    assert not text or count(text) <= room + 20
