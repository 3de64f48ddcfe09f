"""Rows that no sane host sends: refused with a clear `ValueError`, or carried through a compaction, history kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.properties.rules import check_opening, check_shape
from tests.support.effort import HUGE, crossed, full
from tests.support.paths import ROOT
from tests.support.rows import call, feed, result, tool_session, user
from tests.support.views import untimed

pytestmark = pytest.mark.usefixtures("no_hang")
SMALL: dict[str, Any] = {"segment_tokens": 512, "prefetch": False}
MANY = full(1_000, 600)
Rows = list[Any]


def nested(levels: int, make: Callable[[Any], Any] = lambda inner: {"a": inner}) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = make(value)
    return value


DICT_IN_ITSELF: dict[str, Any] = {"role": "user", "content": "x"}
DICT_IN_ITSELF["metadata"] = {"row": DICT_IN_ITSELF}
LIST_IN_ITSELF: list[Any] = []
LIST_IN_ITSELF.append(LIST_IN_ITSELF)


def openai_call(call_id: Any, arguments: Any, name: Any = "bash") -> dict[str, Any]:
    made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def call_block(call_id: str, arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "bash", "input": arguments}]}


def many_calls(count: int) -> Rows:
    entries = [{"id": f"c{at}", "tool": "bash", "arguments": {"n": at}} for at in range(count)]
    results = (result(f"c{at}", f"done {at}") for at in range(count))
    return [{"role": "assistant", "content": "", "tool_calls": entries}, *results]


HUGE_UNITS = ("a", "日", "#1 user\n", "always do not never must ", " ", "\n")


def huge(unit: str) -> Rows:
    return [user(unit * (HUGE // len(unit.encode())))]


NO_CONTENTS: Rows = [None, "", [], {}, 0, 1.5, (), [[]], {"a": [1]}]
DEEP_JSON = '{"a":' * 10_000 + "1" + "}" * 10_000
DEEP_LIST = "[" * 10_000 + "]" * 10_000

CORPUS = (ROOT / "tests" / "corpora" / "odd_rows.jsonl").read_text("ascii").splitlines()
"""What JSON can hold of them: `rows` that are kept, and one that is `refused`."""
ODD: list[dict[str, Any]] = [json.loads(line) for line in CORPUS]

KEPT: dict[str, Callable[[], Rows]] = {
    **{odd["name"]: partial(deepcopy, odd["rows"]) for odd in ODD if "rows" in odd},
    "NULs and control characters": lambda: [
        user("\x00" * 500 + "a\x00b\x1b[31m\x7f\x85\u2028\u202e\ufeff\uffff"),
        call("c\x00", "to\x00ol", cmd="\x00"),
        result("c\x00", "\x00\x01\x02" * 300),
    ],
    **{f"a huge text of {unit!r}": partial(huge, unit) for unit in HUGE_UNITS},
    "huge arguments of quotes and backslashes": lambda: [call("c", cmd='\\"' * (HUGE // 2)), result("c")],
    "10,000-deep JSON text as arguments": lambda: [
        openai_call("c1", DEEP_JSON), result("c1"), call_block("c2", DEEP_LIST), result("c2"),
        openai_call("c3", DEEP_JSON[:-1]), result("c3", DEEP_JSON),
    ],
    "200-deep arguments": lambda: [call_block("c", nested(190)), result("c")],
    "JSON text that is no object": lambda: [
        openai_call("c1", "[1, 2]"), result("c1"), openai_call("c2", "NaN"), result("c2"), openai_call("c3", '"'),
        result("c3"), openai_call("c4", "1" * 5_000), result("c4"), openai_call("c5", "-1e999999"), result("c5"),
    ],
    "ids that repeat": lambda: [
        *(row for _ in range(30) for row in (call("same"), result("same", "out"))),
        *many_calls(3), *many_calls(3), call("same"), call("same"), result("same"),
    ],
    "one id for all calls of a row": lambda: [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "x", "tool": "t", "arguments": {}}] * 50},
        *[result("x")] * 50,
    ],
    "results before calls, twice and far away": lambda: [
        result("c"), result("d"), call("c"), call("d"), result("c", "one"), result("c", "two"), *tool_session(10), result("d"),  # noqa: E501
    ],
    "huge names": lambda: [
        call("c" * 100_000, "n" * 100_000), result("c" * 100_000, "ok", "n" * 100_000),
        {"role": "user", "name": "u" * HUGE, "content": "x"}, openai_call("d", "{}", "m" * HUGE), result("d"),
    ],
    "very many blocks": lambda: [user([{"type": "text", "text": f"block {at}"} for at in range(2 * MANY)])],
    "contents that are none": lambda: [
        {"role": role, **content}
        for role in ("user", "assistant", "system", "developer", "function")
        for content in ({}, *({"content": value} for value in NO_CONTENTS))
    ],
    "very many calls in one row": lambda: many_calls(MANY),
    "very many calls whose results come backwards": lambda: [many_calls(MANY)[0], *many_calls(MANY)[:0:-1]],
    "very many results without a call": lambda: [result(f"lost{at}") for at in range(MANY)],
    "very many rows between a call and its result": lambda: [
        call("c"), *({"role": "system", "content": "x", "metadata": {"source": "hook"}} for _ in range(MANY)), result("c"),  # noqa: E501
    ],
    "very many pins": lambda: [{"role": "user", "content": f"keep {at}", "critical": True} for at in range(MANY // 5)],
    "NaN and infinities": lambda: [
        call("c", x=float("nan"), y=float("inf")), result("c", {"z": [float("-inf")]}), user({"a": float("nan")}),
        {"role": "user", "content": "x", "metadata": {"at": float("nan")}},
    ],
    "tuples": lambda: [
        user(({"type": "text", "text": "a"}, {"type": "text", "text": "b"})),
        {"role": "assistant", "content": (), "tool_calls": ({"id": "c", "tool": "t", "arguments": {"x": (1, (2,))}},)},
        result("c", ("out",)), {"role": "assistant", "content": "x", "tool_calls": ({"id": "c"},)},
    ],
    "keys that are no strings": lambda: [
        {"role": "user", "content": "x", 7: "seven", None: 1, True: 2, 1.5: 3},
        call_block("c", {1: {2: 3}, None: None, "1": 4}), result("c", {7: 8, "7": 9}),
        {"role": "user", "content": "x", "metadata": {1: 2, "1": 3}},
    ],
    "texts of data that Python does not write": lambda: [
        row
        for text in (f"{{'key': 0x{'f' * 3_600}}}", f"{{'id': 1{'0' * 4_000}}}", "[" * 3_000, "{'a': 1e999, {}: []}")
        for row in (call("c"), result("c", text))
    ],
    "large numbers": lambda: [call("c", n=10**4_000), result("c", {"n": -(10**4_000), "f": 1e308})],
}  # fmt: skip

REFUSED: dict[str, Callable[[], Any]] = {
    **{odd["name"]: partial(deepcopy, odd["refused"]) for odd in ODD if "refused" in odd},
    "10,000-deep arguments": lambda: call_block("c", nested(10_000)),
    "10,000-deep tuples": lambda: user(nested(10_000, lambda inner: (inner,))),
    "10,000-deep metadata": lambda: {**user("x"), "metadata": nested(10_000)},
    "a dict that holds itself": lambda: DICT_IN_ITSELF,
    "a list that holds itself": lambda: user(LIST_IN_ITSELF),
    "a huge role": lambda: {"role": "u" * HUGE, "content": "x"},
    "a result whose id is huge": lambda: {"role": "tool", "tool_call_id": 10**5_000, "content": "x"},
    "a huge number": lambda: call("c", n=10**5_000),
    "bytes": lambda: user(b"x"),
    "a pair": lambda: ("role", "user"),
    "a set": lambda: user({"a", "b"}),
    "a key that is a pair": lambda: {"role": "user", "content": "x", ("a", "b"): 1},
}


def answer(request: ChatRequest) -> str:
    """A short summary; the request must have been something that can be sent."""
    request.model_dump_json().encode()
    return "Goal: something was asked for, and it was done."


@pytest.mark.parametrize(("name", "is_added"), crossed([*KEPT], [True, False]))
async def test_what_is_kept_passes_compactions_and_stays_as_it_was(name, is_added, caplog):
    """With a provider or without one; the host looks at everything."""
    rows, provider = KEPT[name](), ScriptedProvider(then=answer) if is_added else None
    made = SummarizingContextManager(keep_recent=2, **SMALL)
    whole = [user("begin"), *rows, *tool_session(3)]
    before = repr(whole)  # for comparing: NaN differs from itself
    await (feed(made, whole) if is_added else made.set_messages(whole))
    for budget in (50_000, 3_000, 400):
        view = await made.get_messages_for_request(budget, provider)
        check_shape(view)
        check_opening(view, whole, 1)
        json.dumps(view, skipkeys=True)
        assert await made.get_messages_for_request(budget, provider) == view or "nan" in before
    await made.compact()
    await made.set_messages(await made.get_messages())
    assert repr(untimed(await made.get_messages())) == repr(untimed(whole))
    assert repr(whole) == before
    await made.add_message(user("after all that"))
    check_shape(await made.get_messages_for_request(3_000, provider))
    assert await made.get_token_count() > 0
    await made.close()
    assert [line for line in caplog.messages if "notes" in line or "cannot be" in line] == []


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_is_refused_with_its_reason_and_changes_nothing(row):
    provider, made = ScriptedProvider(then=answer), SummarizingContextManager(keep_recent=2, **SMALL)
    rows = tool_session(8)
    await made.set_messages(rows)
    view = await made.get_messages_for_request(900, provider)
    calls = provider.calls
    wrong = row()
    for offer in (made.add_message(wrong), made.set_messages([user("x"), wrong])):
        with pytest.raises(ValueError) as caught:  # its text is looked at below
            await offer
        assert 10 < len(str(caught.value)) < 300
        str(caught.value).encode()
    assert "message 2: " in str(caught.value), "the wrong row among others is named by its place, from 1"
    assert untimed(await made.get_messages()) == rows
    assert await made.get_messages_for_request(900, provider) == view
    assert provider.calls == calls


def ending() -> Iterator[JsonRow]:
    yield user("one")
    raise OSError("the disk is gone")


NO_LISTS: Rows = [None, 7, "rows", b"rows", {"role": "user"}, [[]], [None], [["role", "user"]]]


@pytest.mark.parametrize("messages", [*NO_LISTS, ending()])
async def test_what_is_no_list_of_messages_is_refused_and_changes_nothing(messages):
    """Also what raises while it is read: its error reaches the host."""
    made = SummarizingContextManager()
    await made.add_message(user("hi"))
    with pytest.raises((ValueError, OSError), match="disk" if isinstance(messages, Iterator) else "message"):
        await made.set_messages(messages)
    assert untimed(await made.get_messages()) == [user("hi")]
