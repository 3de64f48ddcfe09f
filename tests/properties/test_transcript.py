"""For every input: a rendered transcript is read back as it was written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.rendered import RenderedRow, parse_rendered, render_rows

pieces = st.sampled_from(["#12 ", "\n", "#2 user\n", "\n\n#3 tool x\n", 'call bash({"command": "ls"})', "\\", '"'])
texts = st.one_of(st.text(max_size=200), st.lists(st.one_of(pieces, st.text(max_size=20)), max_size=12).map("".join))
names = st.none() | st.text(st.characters(exclude_characters="\n"), max_size=20)


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), names, texts), max_size=6),
    st.integers(0, 10_000),
)
def test_parsing_undoes_rendering(given_rows, first):
    escaped = [(role, name, escape_marks(text)) for role, name, text in given_rows]
    made = [RenderedRow(first + place, *row) for place, row in enumerate(escaped)]
    assert parse_rendered(render_rows(made)) == tuple(made)
