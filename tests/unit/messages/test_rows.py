"""Rows in every shape that hosts use: what is known of them, their text, their form in a view, and their time."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from amplifier_core.message_models import Message, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

from context_summarize import SummarizingContextManager
from context_summarize.errors import MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call, JsonRow, Row, saved_json
from context_summarize.messages.shortening import cut_to_note, shortened_to
from context_summarize.messages.text import content_text, prose
from context_summarize.messages.view_rows import view_row
from tests.support.paths import corpus
from tests.support.rows import assistant, calls, feed, hook, result, user
from tests.support.views import untimed

SHOWN = {"shown_by": "context-summarize"}
SIGNED = {"type": "thinking", "thinking": "private", "signature": "sig-1", "content": [None, "rs_2"]}
WEATHER = Call("a", "weather", {"city": "Oslo"})
USE: dict[str, Any] = {"id": "a", "name": "weather", "input": {"city": "Oslo"}}
RESULTS = user(
    [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "21 degrees"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "rain"},
        {"type": "text", "text": "and now?"},
    ]
)


def row(raw: Any) -> Row:
    return analyse(normalise(raw))


def view(raw: Any, answered: list[str] | None = None) -> JsonRow:
    shown = view_row(row(raw), answered)
    assert shown is not None
    Message(**shown)
    return shown


@pytest.mark.parametrize("line", corpus("contents.jsonl"))
def test_content_of_any_kind_has_one_public_text_and_a_form_that_the_host_accepts(line: str) -> None:
    """Thinking is left out of the text; data and blocks that the host does not know become JSON, images a note."""
    case = json.loads(line)
    assert content_text(case["content"]) == case["text"]
    assert view(user(case["content"]))["content"] == case["shown"]


def test_pydantic_blocks_become_dicts() -> None:
    """Host code hands over blocks of the host's models."""
    blocks = [TextBlock(text="Let me look."), ThinkingBlock(thinking="p", signature="s"), ToolCallBlock(**USE)]
    kept = normalise(assistant(blocks))
    assert all(type(block) is dict for block in kept["content"])
    assert [block["type"] for block in kept["content"]] == ["text", "thinking", "tool_call"]
    assert analyse(kept).calls == (WEATHER,)
    assert row(user([ToolResultBlock(tool_call_id="a", output={"t": 21})])).result_ids == ("a",)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else "x"


@pytest.mark.parametrize(
    ("kept", "refused"), [(10**4_200, 10**4_300), (nested(170), nested(230))], ids=["numbers", "data"]
)
def test_what_breaks_a_hosts_json_encoder_is_refused(kept: Any, refused: Any) -> None:
    """Integers of more than 4,300 digits, and very deep data."""
    assert normalise(user([kept])) == user([kept])
    with pytest.raises(MessageError, match=r"integer|nested"):
        normalise(user([refused]))


@pytest.mark.parametrize(
    ("raw", "rendered", "is_user", "pinned"),
    [
        (user("x"), True, True, False),
        (assistant("x"), True, False, False),
        ({"role": "function", "name": "f", "content": "x"}, True, False, False),
        ({"role": "system", "content": "x"}, False, False, True),
        (hook("x", "user"), False, False, False),
        (user("x", metadata={"ephemeral": True}), False, False, False),
        ({"role": "system", "content": "x", "ephemeral": True}, False, False, False),
        (user("x", metadata={"critical": True}), True, True, True),
        ({**hook("x"), "critical": True}, False, False, False),
        (user("x", critical=True, ephemeral=True), False, False, False),
        (user("x", metadata={"critical": "yes", "ephemeral": 1}), True, True, False),
        (user("x", metadata={"amplifier:instruction": {}}), False, False, True),
        (user("x", metadata={"amplifier:instruction": {"disposition": "retired"}}), False, False, False),
        ({**RESULTS, "metadata": {"amplifier:instruction": {}}}, True, False, False),
        (RESULTS, True, False, False),
        (result("a"), True, False, False),
    ],
)
def test_marks_say_what_is_rendered_a_user_message_or_a_pin(
    raw: JsonRow, rendered: bool, is_user: bool, pinned: bool
) -> None:
    """System, developer, hook and ephemeral rows are not rendered; hook rows are never pins."""
    found = row(raw)
    assert (found.rendered, found.user, found.pinned) == (rendered, is_user, pinned)


def test_arguments_that_are_no_json_stay_text_and_none_becomes_empty() -> None:
    """What the model wrote is kept as it is."""
    functions = [{"name": "f", "arguments": text} for text in ("{broken", "[" * 100_000, None)]
    entries = [{"id": "a", "type": "function", "function": made} for made in [*functions, {"name": None}]]
    found = row({"role": "assistant", "content": "", "tool_calls": entries}).calls
    assert [one.arguments for one in found] == ["{broken", "[" * 100_000, {}, {}]
    assert found[-1].name == ""


def test_thinking_metadata_empty_parts_and_what_hosts_do_not_save_are_left_out() -> None:
    """Private reasoning and opaque state never reach the summariser; None at every depth is no data."""
    raw = {
        **assistant([SIGNED, {"type": "text", "text": ""}, {"type": "text", "text": "Done"}]),
        "thinking_block": {"thinking": "private"},
        "metadata": {"openai:reasoning_items": ["rs_2"]},
    }
    assert prose(row(raw)) == "Done"
    assert prose(row(assistant(None))) == ""
    given = {"a": None, "b": [None, {"c": None, "d": "null"}], "e": (1, None)}
    assert json.loads(saved_json(given)) == {"b": [{"d": "null"}], "e": [1]}


def test_a_tool_result_block_gets_the_hosts_keys() -> None:
    """tool_use_id and content become tool_call_id and output."""
    assert view(RESULTS, ["a", "b"])["content"] == [
        {"type": "tool_result", "tool_call_id": "a", "output": [{"type": "text", "text": "21 degrees"}]},
        {"type": "tool_result", "tool_call_id": "b", "output": "rain"},
        {"type": "text", "text": "and now?"},
    ]
    assert view(user([{"type": "tool_result", "tool_use_id": "a"}]), ["a"])["content"][0]["output"] == ""


def test_a_tool_row_of_a_hook_is_shown_as_user_text() -> None:
    """It answers no call, so it may not stand as a result."""
    answer, marks = {"role": "tool", "tool_call_id": "h", "content": "x"}, {"source": "hook"}
    assert view({**answer, "metadata": marks}) == user("x", metadata={**SHOWN, **marks})
    assert view({**answer, "ephemeral": True}) == user("x", metadata=SHOWN)


ODD, SAID = ({"type": "text", "text": "said", **more} for more in ({"visibility": "everybody"}, {}))


LONG = "many words that say nothing new " * 3_125


async def in_a_small_window(made: JsonRow) -> dict[str, Any]:
    """The call as a request shows it that has no room for all of it."""
    manager = SummarizingContextManager(max_tokens=8_000, safety_margin=0)
    await feed(manager, (user("Go."), made, result("c", "Done.")))
    return next(row for row in await manager.get_messages_for_request() if row["role"] == "assistant")


@pytest.mark.parametrize("key", ["text", "name", "id", "type", "tool_call_id"])
async def test_a_long_argument_is_shortened_whatever_its_name(key: str) -> None:
    """Head and tail stay, and the other arguments stay whole."""
    shown = await in_a_small_window(calls(("c", "write", {key: LONG, "path": "a.txt"})))
    for given in (shown["content"][0]["input"], shown["tool_calls"][0]["arguments"]):
        assert given["path"] == "a.txt"
        assert given[key].startswith("many words")
        assert "characters left out" in given[key]
        assert len(given[key]) > 5_000


async def test_arguments_as_json_text_stay_json() -> None:
    """Providers take nothing else."""
    function = {"name": "write", "arguments": json.dumps({"name": LONG, "path": "a.txt"})}
    made = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    shown = (await in_a_small_window(made))["tool_calls"][0]["function"]
    assert shown["name"] == "write"
    assert json.loads(shown["arguments"])["path"] == "a.txt"
    assert len(shown["arguments"]) < len(LONG)
    note = json.loads(cut_to_note(made)["tool_calls"][0]["function"]["arguments"])
    assert list(note) == ["left_out"]


@pytest.mark.parametrize("shorten", [cut_to_note, lambda row: shortened_to(row, 0.001, "")])
def test_ids_names_and_signed_blocks_stay_whole(shorten: Any) -> None:
    """The host takes the row as before; an image becomes a word."""
    signed, png = {**SIGNED, "thinking": LONG}, "iVBORw0KGgo="
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}
    block = {"type": "tool_call", "id": "c" * 200, "name": "n" * 200, "input": {"a": [LONG], "b": {"c": LONG}}}
    short = shorten(view(assistant([signed, {"type": "text", "text": LONG}, image, block])))
    Message(**short)
    first, *rest = short["content"]
    assert first == signed
    assert {**rest[-1], "input": 0} == {**block, "input": 0}
    assert len(str(rest)) < 2_000
    assert png not in str(rest)


TIME = "2026-02-06T10:00:00.123Z"


@pytest.mark.parametrize(
    ("marks", "is_timed"),
    [
        ({"metadata": {"timestamp": TIME}}, False),
        ({"timestamp": TIME}, False),  # beside the metadata, as older hosts write it
        ({"metadata": ["no place for a time"]}, False),
        ({"metadata": None}, True),
        ({"metadata": {}}, True),
        ({"metadata": {"timestamp": None}}, True),
        ({"metadata": {"source": "hook"}}, True),
    ],
)
async def test_a_row_gets_a_time_where_the_host_gave_none_and_other_marks_stay(
    marks: dict[str, Any], is_timed: bool
) -> None:
    manager, passed = SummarizingContextManager(), user("Hello.", **marks)
    given = copy.deepcopy(passed)
    await manager.add_message(passed)
    [kept] = await manager.get_messages()
    assert passed == given, "what the host passed is the host's"
    assert (kept != given) is is_timed
    assert untimed([kept]) == untimed([given])
