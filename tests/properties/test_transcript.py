"""For every input: a rendered transcript is read back as it was written."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from context_summarize.transcript.rows import RenderedRow, parse_rendered, render_rows

pieces = st.sampled_from(["#12 ", "\n", "#2 user\n", "\n\n#3 tool x\n", 'call bash({"command": "ls"})', "\\", '"'])
texts = st.one_of(st.text(max_size=200), st.lists(st.one_of(pieces, st.text(max_size=20)), max_size=12).map("".join))
names = st.none() | st.text(st.characters(exclude_characters="\n"), max_size=20)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), names, texts), max_size=6),
    st.integers(0, 10_000),
)
def test_parsing_undoes_rendering(given_rows: list[tuple[str, str | None, str]], first: int) -> None:
    """Unless a text holds the very header that would follow."""
    made = [RenderedRow(first + place, role, name, text) for place, (role, name, text) in enumerate(given_rows)]
    for row in made:
        assume(not re.search(rf"^#0*{row.number + 1} (?:user|assistant|tool)", row.text, re.M))
    assert parse_rendered(render_rows(made)) == tuple(made)
