"""Formats: what goes to an API keeps its rules whatever the rows are, and comes back as it went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_summarize import SummarizingContextManager
from context_summarize.formats import from_anthropic, from_openai, to_anthropic, to_openai
from context_summarize.messages.reading import row_calls
from examples.strict_server import anthropic_refusal, openai_refusal
from tests.properties.strategies import PNG, STORED_ROWS, histories
from tests.support.paths import ROOT

Rows = list[dict[str, Any]]
ODD = {
    case["name"]: case["rows"]
    for case in map(json.loads, (ROOT / "tests" / "corpora" / "odd_rows.jsonl").read_text("ascii").splitlines())
    if "rows" in case
}
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
NAMES = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
ARGUMENTS = st.dictionaries(WORDS, WORDS | st.integers() | st.lists(WORDS, max_size=2) | st.none(), max_size=3)


async def view_of(rows: Rows) -> Rows:
    """The rows of a request, before any compaction."""
    context = SummarizingContextManager(prefetch=False)
    for row in rows:
        await context.add_message(row)
    view = await context.get_messages_for_request(1_000_000)
    await context.close()
    return view


@st.composite
def openai_messages(draw: st.DrawFn) -> Rows:
    """Messages as the API takes them: a system prompt, users with images, answers with calls, results."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    said = st.builds(lambda text: {"type": "text", "text": text}, WORDS)
    parts = st.lists(said | st.just(image), min_size=2, max_size=3) | st.just([image])
    messages: Rows = [{"role": role, "content": draw(WORDS)} for role in draw(st.sampled_from([(), ("system",)]))]
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS | parts)})
        ids = [f"call_{turn}_{at}" for at in range(draw(st.integers(0, 2)))]
        if ids:
            made = [
                (i, {"name": draw(NAMES), "arguments": json.dumps(draw(ARGUMENTS), ensure_ascii=False)}) for i in ids
            ]
            calls = [{"id": i, "type": "function", "function": function} for i, function in made]
            messages.append({"role": "assistant", "content": draw(st.none() | WORDS), "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": i, "content": draw(WORDS)} for i in ids]
        messages.append({"role": "assistant", "content": draw(WORDS)})
    return messages


@st.composite
def anthropic_requests(draw: st.DrawFn) -> dict[str, Any]:
    """System prompt and messages as the API takes them: signed thinking, calls, results with images, failed ones."""
    text = st.builds(lambda said: {"type": "text", "text": said}, WORDS)
    source = st.sampled_from(
        [
            {"type": "base64", "media_type": "image/png", "data": PNG},
            {"type": "url", "url": "https://example.com/x.png"},
        ]
    )
    image = st.builds(lambda source: {"type": "image", "source": source}, source)
    thought = st.sampled_from(
        [{"type": "thinking", "thinking": "hm", "signature": "s1g"}, {"type": "redacted_thinking", "data": "x"}]
    )
    messages: Rows = []
    results: Rows = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": [*results, *draw(st.lists(text | image, min_size=1, max_size=2))]})
        ids = [f"toolu_{turn}_{at}" for at in range(draw(st.integers(0, 2)))]
        calls = [{"type": "tool_use", "id": i, "name": draw(NAMES), "input": draw(ARGUMENTS)} for i in ids]
        said = draw(st.lists(text, min_size=0 if calls else 1, max_size=2))
        messages.append({"role": "assistant", "content": [*draw(st.lists(thought, max_size=1)), *said, *calls]})
        contents = WORDS | st.lists(text | image, min_size=1, max_size=2)
        failed = draw(st.sampled_from([{}, {"is_error": True}]))
        results = [{"type": "tool_result", "tool_use_id": i, "content": draw(contents), **failed} for i in ids]
    messages += [{"role": "user", "content": results}] if results else []
    return {"messages": messages, **draw(st.sampled_from([{}, {"system": "be kind"}]))}


@given(openai_messages())
async def test_messages_of_openai_come_back_as_they_went_also_through_a_context(messages: Rows) -> None:
    assert openai_refusal(messages) is None
    rows = from_openai(messages)
    assert to_openai(rows) == messages
    assert to_openai(await view_of(rows)) == messages


@given(anthropic_requests())
async def test_messages_of_anthropic_come_back_as_they_went_also_through_a_context(request: dict[str, Any]) -> None:
    assert anthropic_refusal(request) is None
    rows = from_anthropic(**request)
    assert to_anthropic(rows) == request
    assert to_anthropic(await view_of(rows)) == request


@given(histories() | STORED_ROWS)
async def test_every_view_is_a_request_that_the_apis_take_and_that_comes_back_the_same(rows: Rows) -> None:
    await taken_and_back(rows)


@pytest.mark.parametrize(("name", "rows"), ODD.items(), ids=ODD)
async def test_so_is_the_view_of_odd_rows(name: str, rows: Rows) -> None:
    await taken_and_back(rows)


async def taken_and_back(rows: Rows) -> None:
    """Calls whose result has not come yet get one, for a loop asks only when every call has its result."""
    view = await view_of([*rows, {"role": "user", "content": "Go on."}])
    messages, request = to_openai(view), to_anthropic(view)
    assert openai_refusal(messages) is None
    assert anthropic_refusal(request) is None
    come_back(messages, request)


def come_back(messages: Rows, request: dict[str, Any]) -> None:
    """The way back and there again changes nothing, and clients can encode what they get."""
    json.dumps([messages, request], ensure_ascii=False, allow_nan=False).encode()
    assert to_openai(from_openai(messages)) == messages
    assert to_anthropic(from_anthropic(**request)) == request


@given(histories())
def test_any_rows_become_messages_also_those_whose_pairs_are_broken(rows: Rows) -> None:
    """Each text and each call of theirs is there, and nothing of their metadata."""
    texts = {row["content"] for row in rows if isinstance(row.get("content"), str) and row["content"].strip()}
    calls = [call.id for row in rows if row["role"] == "assistant" for call in row_calls(row)]
    messages, request = to_openai(rows), to_anthropic(rows)
    for told in (messages, request):
        text = json.dumps(told, ensure_ascii=False)
        assert all(json.dumps(one, ensure_ascii=False)[1:-1] in text for one in texts)
        assert "metadata" not in text
    assert [call["id"] for one in messages for call in one.get("tool_calls", ())] == calls
    used = [block["id"] for one in request["messages"] for block in one["content"] if block["type"] == "tool_use"]
    assert used == calls
    come_back(messages, request)
