"""Random histories of every message shape, for the properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Rows = list[dict[str, Any]]

WORDS = st.sampled_from(
    ["order", "A1B2C3", "$12.50", "src/app/main.py", "always", "do not", "ship", "#12 user", "###", "ünïcode", "日本語",
     "https://example.com/x?y=1", "error: it failed", "=== transcript", "$first ${text}", "\n", "line\nbreak"]
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn, most: int = 60) -> str:
    """Words, sometimes many of them, so that sizes differ by orders of magnitude."""
    words = draw(st.lists(WORDS, max_size=8))
    times = draw(st.sampled_from([1, 1, 1, 2, 5, most]))
    return " ".join(words * times)


@st.composite
def marked(draw: st.DrawFn, row: dict[str, Any]) -> dict[str, Any]:
    """The row, now and then marked critical, ephemeral, or carrying a continuation id."""
    mark = draw(st.integers(0, 19))
    if mark == 0:
        return {**row, "metadata": {"critical": True}}
    if mark == 1:
        return {**row, "critical": True}
    if mark == 2 and row["role"] == "assistant":
        return {**row, "metadata": {"openai:response_id": "resp_1", "kept": 1}}
    return row


PNG = "iVBORw0KGgo="
IMAGES = [
    [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
    [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}],
]


@st.composite
def contents(draw: st.DrawFn) -> Any:
    """Content of a user or assistant row without calls: half of it is text alone."""
    text = draw(texts())
    blocks = [{"type": "text", "text": text}, {"type": "weird", "x": [1, {"y": 2}]}]
    return draw(st.sampled_from([*[text] * 5, None, blocks, *IMAGES, {"answer": text}]))


@st.composite
def single(draw: st.DrawFn) -> Rows:
    """One row without calls: user, assistant, system, developer, hook, orphan result, of the moment, thought."""
    text = draw(texts())
    if draw(st.integers(0, 15)) < 10:
        role = draw(st.sampled_from([*["user"] * 6, *["assistant"] * 4]))
        return [draw(marked({"role": role, "content": draw(contents())}))]
    rare = [
        {"role": "system", "content": draw(st.sampled_from(["be kind", "be brief"]))},
        {"role": "developer", "content": text[:200]},
        {"role": draw(st.sampled_from(["system", "user", "assistant"])), "content": text,
         "metadata": {"source": "hook", "ephemeral": False}},
        {"role": "tool", "tool_call_id": draw(st.sampled_from(["c0", "c1", "lost"])), "content": text},
        {"role": "user", "content": text, "ephemeral": True},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s1g"}]},
    ]  # fmt: skip
    return [draw(st.sampled_from(rare))]


@st.composite
def call_row(draw: st.DrawFn, ids: list[str]) -> dict[str, Any]:
    """An assistant row with these calls, in one of four shapes."""
    text = draw(texts(3))
    blocks = [{"type": "tool_call", "id": i, "name": "bash", "input": {"path": text}} for i in ids]
    function = {"name": "bash", "arguments": '{"a": 1}'}
    shapes = [
        {"content": blocks, "tool_calls": [{"id": i, "tool": "bash", "arguments": {"path": text}} for i in ids]},
        {"content": None, "tool_calls": [{"id": i, "type": "function", "function": function} for i in ids]},
        {"content": [{"type": "text", "text": text}, *({**block, "type": "tool_use"} for block in blocks)]},
        {"content": text, "tool_calls": [{"id": i, "tool": "b", "arguments": {}} for i in ids]},
    ]
    return {"role": "assistant", **draw(st.sampled_from(shapes))}


@st.composite
def tool_run(draw: st.DrawFn) -> Rows:
    """Calls with their results: in any order, some twice, some missing, with rows of hooks in between."""
    ids = draw(st.lists(st.sampled_from(["c0", "c1", "c2"]), min_size=1, max_size=3))
    rows = [draw(call_row(ids))]
    answered = draw(st.permutations(ids))
    keep = draw(st.sampled_from([len(ids), len(ids), len(ids), len(ids) - 1, len(ids) + 1]))
    answered = (list(answered) + list(ids))[: max(0, keep)]
    anthropic = draw(st.booleans()) and draw(st.booleans())
    if anthropic and answered:
        blocks = [{"type": "tool_result", "tool_use_id": i, "content": draw(texts())} for i in answered]
        return [*rows, {"role": "user", "content": blocks}]
    for call_id in answered:
        if draw(st.integers(0, 4)) == 0:
            rows.append({"role": "system", "content": "hooked", "metadata": {"source": "hook"}})
        rows.append({"role": "tool", "tool_call_id": call_id, "name": "bash", "content": draw(texts(120))})
    return rows


@st.composite
def histories(draw: st.DrawFn, most: int = 25) -> Rows:
    """A whole history."""
    runs = draw(st.lists(st.one_of(single(), single(), tool_run()), max_size=most))
    return [row for run in runs for row in run]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**13_000), 2**13_000)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
STORED_ROWS = st.lists(
    st.builds(
        lambda role, content, more: {**more, "role": role, "content": content},
        st.sampled_from(["system", "developer", "user", "assistant", "function"]),
        JSON,
        st.dictionaries(st.text(min_size=1, max_size=3), JSON, max_size=2),
    ),
    max_size=4,
)
"""Rows of any shape, as a history's file and a host's copy of it may hold them."""
