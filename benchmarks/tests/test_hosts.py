"""The strict server of the hosts' sessions, and the prompt cache of blocks."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest

from benchmarks.hosts.blocks import Block, BlockCache, laid_out
from benchmarks.hosts.server import Model, RefusedError, message, serving

CALL = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "nothing there"}


def body(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "any", "tools": [{"name": "look"}], "input": list(items), **more}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([CALL], "No tool output found"),
        ([RESULT, CALL], "No tool call found"),
        ([CALL, RESULT, CALL], "Duplicate"),
        ([{"role": "user", "content": ""}], "no content"),
        ([{"role": "user", "content": "word " * 200}], "exceeds the context window"),
    ],
)
def test_what_the_api_refuses_is_refused_and_counted(items: list[Any], said: str) -> None:
    model = Model([], 100, lambda text: len(text.split()))

    with pytest.raises(RefusedError, match=said):
        model.respond(body(*items))

    assert len(model.faults) + len(model.too_long) == 1
    assert model.requests == []


def test_a_response_that_is_built_on_counts_for_what_the_request_does_not_hold() -> None:
    model = Model([[message("one " * 30)], [message("two")]], 1_000, lambda text: len(text.split()))
    first = model.respond(body({"role": "user", "content": "begin"}))

    alone = model.respond(body({"role": "user", "content": "go on"}))
    chained = model.respond(body({"role": "user", "content": "go on"}, previous_response_id=first["id"]))

    assert chained["usage"]["input_tokens"] > alone["usage"]["input_tokens"] + 30


def test_a_chat_request_is_held_to_the_same_rules_and_answered_in_its_own_shape() -> None:
    """Results that name no call answer the open calls in turn."""
    model = Model([[{**CALL, "call_id": "call_3"}]], 1_000, lambda text: len(text.split()))
    calls = [{"id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}} for n in (1, 2)]
    results = [{"role": "tool", "content": "nothing"}, {"role": "tool", "content": "much"}]
    rows = [{"role": "user", "content": "look"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    chat = {"model": "any", "tools": [{"name": "look"}], "messages": rows}

    with (
        serving(model.respond) as address,
        urlopen(
            Request(f"{address}/chat/completions", json.dumps(chat).encode(), {"content-type": "application/json"})
        ) as answer,
    ):
        told = json.load(answer)["choices"][0]

    assert model.faults == []
    assert told["finish_reason"] == "tool_calls"
    assert told["message"]["tool_calls"][0]["id"] == "call_3"


def test_a_block_cache_reads_what_ended_at_a_breakpoint_and_writes_the_rest() -> None:
    cache = BlockCache()
    head, tail = Block("tools", is_end=True), Block("more", is_end=True)

    assert cache.send([head, Block("first"), tail]) == [head, Block("first"), tail]
    assert cache.send([head, Block("first"), tail, Block("new", is_end=True)]) == [Block("new", is_end=True)]
    assert cache.send([head, Block("other"), tail]) == [Block("other"), tail], "nothing ended at the first block"


@pytest.mark.parametrize(("role", "rewritten"), [("system", True), ("user", False)])
def test_a_new_summary_rewrites_the_prompt_only_if_it_is_in_the_same_block(role: str, rewritten: bool) -> None:
    cache = BlockCache()
    for summary in ("one", "two"):
        rows = [{"role": "system", "content": "the prompt"}, {"role": role, "content": summary}]
        written = cache.send(laid_out([*rows, {"role": "user", "content": "go on"}]))

    assert any("the prompt" in block.text for block in written) is rewritten
