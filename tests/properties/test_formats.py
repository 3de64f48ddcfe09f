"""Formats: what goes to an API keeps its rules whatever the rows are, and comes back as it went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

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
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://example.com/x.png"}}
SAID = {"type": "text", "text": "Look \u00e9 \U0001f600."}
ARGUMENTS = {"order": "1", "of": ["a", None, 2], "\u00e9": {}}
CALLS = [
    {"id": f"c{at}", "type": "function", "function": {"name": "look-up_1", "arguments": arguments}}
    for at, arguments in enumerate(("{}", json.dumps(ARGUMENTS, ensure_ascii=False)))
]
OPENAI: Rows = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, SAID]},
    {"role": "assistant", "content": None, "tool_calls": CALLS},
    *({"role": "tool", "tool_call_id": call["id"], "content": "found"} for call in CALLS),
    {"role": "assistant", "content": "Here.", "tool_calls": [{**CALLS[1], "id": "c2"}]},
    {"role": "tool", "tool_call_id": "c2", "content": "found"},
    {"role": "assistant", "content": "It is there."},
    {"role": "user", "content": "Thanks."},
]
THOUGHTS: Rows = [
    {"type": "thinking", "thinking": "hm", "signature": "s1g"},
    {"type": "redacted_thinking", "data": "x"},
]
USES = [{"type": "tool_use", "id": f"t{at}", "name": "look-up_1", "input": ARGUMENTS} for at in range(2)]
ANTHROPIC: dict[str, Any] = {
    "system": "Be kind.",
    "messages": [
        {"role": "user", "content": [PICTURE, SAID, LINKED]},
        {"role": "assistant", "content": [*THOUGHTS, SAID, *USES]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t0", "content": "broken", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t1", "content": [SAID, PICTURE]},
                SAID,
            ],
        },
        {"role": "assistant", "content": [SAID]},
    ],
}


async def view_of(rows: Rows) -> Rows:
    """The rows of a request, before any compaction."""
    context = SummarizingContextManager(prefetch=False)
    for row in rows:
        await context.add_message(row)
    view = await context.get_messages_for_request(1_000_000)
    await context.close()
    return view


async def test_a_conversation_of_openai_comes_back_as_it_went_also_through_a_context() -> None:
    assert openai_refusal(OPENAI) is None
    rows = from_openai(OPENAI)
    assert to_openai(rows) == to_openai(await view_of(rows)) == OPENAI


async def test_a_conversation_of_anthropic_comes_back_as_it_went_also_through_a_context() -> None:
    assert anthropic_refusal(ANTHROPIC) is None
    rows = from_anthropic(**ANTHROPIC)
    assert to_anthropic(rows) == to_anthropic(await view_of(rows)) == ANTHROPIC


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
