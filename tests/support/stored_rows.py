"""Rows of any shape, as a history's file and a host's copy of it may hold them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from context_summarize.messages.rows import JsonRow


def user(text: str, **more: Any) -> JsonRow:
    return {"role": "user", "content": text, **more}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**13_000), 2**13_000)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(
    st.builds(
        lambda role, content, more: {**more, "role": role, "content": content},
        st.sampled_from(["system", "developer", "user", "assistant", "function"]),
        JSON,
        st.dictionaries(st.text(min_size=1, max_size=3), JSON, max_size=2),
    ),
    max_size=4,
)
