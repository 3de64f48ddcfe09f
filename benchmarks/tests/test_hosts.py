"""The strict server of the hosts' sessions."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.hosts.server import Model, RefusedError, message

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
