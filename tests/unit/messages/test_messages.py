"""Message shapes: what is refused on the way in, what is read from a row, and what a view row must look like."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from amplifier_core.message_models import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)

from context_summarize.errors import MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.copying import copy_json, copy_shaped, shape_of
from context_summarize.messages.countable import countable
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import MAX_DEPTH, NO_RESULT, ROLES, SOURCE, Call, JsonRow, Row
from context_summarize.messages.text import compact_json, content_text, render_parts
from context_summarize.messages.view_rows import synthetic_result, view_row, without_continuation
from context_summarize.testing import assistant, call, calls, hook, result, user

PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
SIGNED = {"type": "thinking", "thinking": "private", "signature": "sig-1", "content": [None, "rs_2"]}

BLOCK_CALL = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Let me look.", "visibility": None},
        {"type": "tool_call", "id": "a", "name": "weather", "input": {"city": "Oslo"}, "visibility": None},
    ],
}
LOOP_CALL = {
    **BLOCK_CALL,
    "tool_calls": [{"id": "a", "tool": "weather", "arguments": {"city": "Oslo"}}],
    "metadata": {"openai:response_id": "resp_1", "openai:status": "completed"},
}
OPENAI_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}],
}
ANTHROPIC_CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}}],
}
ANTHROPIC_RESULTS = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "21 degrees"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "rain"},
        {"type": "text", "text": "and now?"},
    ],
}

SHAPES: dict[str, dict[Any, Any]] = {
    "user text": user("hello"),
    "user blocks": user([{"type": "text", "text": "see"}, IMAGE]),
    "user image_url": user([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]),
    "user image_url text": user([{"type": "image_url", "image_url": "https://example.com/a.png"}]),
    "user input_text": user([{"type": "input_text", "text": "hello"}]),
    "user unknown block": user([{"type": "novel", "weight": 3}]),
    "user block without type": user([{"text": "hello"}]),
    "user string block": user(["hello", 5, None]),
    "user empty blocks": user([]),
    "user dict content": user({"question": "why?"}),
    "user number content": user(5),
    "user tuple content": user(({"type": "text", "text": "hello"},)),
    "user missing content": {"role": "user"},
    "user broken image": user([{"type": "image"}, {"type": "image_url"}, {"type": "image", "source": {}}]),
    "user broken text": user([{"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": ["a"]}]),
    "user broken result": user([{"type": "tool_result", "content": "whose?"}]),
    "assistant text": assistant("hi"),
    "assistant none": assistant(None),
    "assistant thinking": assistant([SIGNED, {"type": "text", "text": "Done"}]),
    "assistant broken thinking": assistant(
        [{"type": "thinking"}, {"type": "redacted_thinking"}, {"type": "reasoning", "content": None}]
    ),
    "assistant reasoning": assistant(
        [{"type": "reasoning", "content": [], "summary": ["s"]}, {"type": "redacted_thinking", "data": "xx"}]
    ),
    "assistant thinking_block": {**assistant("hi"), "thinking_block": {"type": "thinking", "thinking": "p"}},
    "loop call": LOOP_CALL,
    "openai call": OPENAI_CALL,
    "anthropic call": ANTHROPIC_CALL,
    "broken call blocks": assistant(
        [{"type": "tool_call", "name": "x"}, {"type": "tool_call", "id": "b", "name": None, "input": "not json"}]
    ),
    "call without content": {"role": "assistant", "tool_calls": [{"id": "a", "tool": "x", "arguments": None}]},
    "tool text": {"role": "tool", "tool_call_id": "a", "content": "{'temp_c': 21}"},
    "tool named": {"role": "tool", "name": "weather", "tool_call_id": "a", "content": "{}"},
    "tool dict": {"role": "tool", "tool_call_id": "a", "content": {"temp_c": 21}},
    "tool blocks": {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}, IMAGE]},
    "tool none": {"role": "tool", "tool_call_id": "a", "content": None},
    "tool number id": {"role": "tool", "tool_call_id": 7, "content": "x"},
    "system": {"role": "system", "content": "be brief"},
    "developer": {"role": "developer", "content": [{"type": "text", "text": "be brief"}]},
    "function": {"role": "function", "name": "f", "content": "x"},
    "hook": hook("note!"),
    "hook user": hook("note!", "user"),
    "hook assistant with calls": {**call("h"), "metadata": {"source": "hook"}},
    "hook tool": {"role": "tool", "tool_call_id": "h", "content": "x", "metadata": {"source": "hook"}},
    "ephemeral tool": {"role": "tool", "tool_call_id": "h", "content": "x", "ephemeral": True},
    "broken keys": {"role": "user", "content": "x", "name": 5, "tool_call_id": 7, "metadata": [1], 3: 4, None: 5},
    "broken metadata": {"role": "user", "content": "x", "metadata": {1: 2, "a": 3}},
    "keys that are no text in a block": user([{"type": "text", "text": "x", 5: 6}]),
}
"""Every shape that DESIGN.md and HOST-FACTS.md name, and broken ones."""


def row(raw: Any, **options: bool) -> Row:
    return analyse(normalise(raw), **options)


def view(raw: Any, answered: list[str] | None = None) -> JsonRow:
    shown = view_row(row(raw), answered)
    assert shown is not None
    Message(**shown)
    return shown


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


class TestNormalise:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_shape_is_kept_deep_equal_and_apart(self, shape: str) -> None:
        """What is kept equals what was given, and shares no dict or list with it."""
        given = copy.deepcopy(SHAPES[shape])
        kept = normalise(given)
        assert kept == given
        assert kept is not given
        if isinstance(given.get("content"), list) and given["content"]:
            assert kept["content"] is not given["content"]
            given["content"].clear()
            assert kept == SHAPES[shape]

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (None, "must be a dict, got NoneType"),
            ("hello", "must be a dict, got str"),
            ([("role", "user")], "must be a dict, got list"),
            ({}, "must have a role"),
            ({"content": "x"}, "must have a role"),
            ({"role": None}, "must have a role"),
            ({"role": "robot"}, "unknown role 'robot'; expected one of system, developer"),
            ({"role": "USER"}, "did you mean 'user'?"),
            ({"role": "Assistant"}, "did you mean 'assistant'?"),
            ({"role": ["user"]}, "unknown role"),
            ({"role": 5}, "unknown role of type int"),
            ({"role": "r" * 500}, "unknown role"),
            ({"role": "tool", "content": "x"}, "needs the id of its call in tool_call_id, got None"),
            ({"role": "tool", "tool_call_id": "", "content": "x"}, "tool_call_id, got ''"),
            ({"role": "tool", "tool_call_id": True, "content": "x"}, "tool_call_id, got a bool"),
            ({"role": "tool", "tool_call_id": ["a"], "content": "x"}, "tool_call_id"),
            ({"role": "user", "content": object()}, "message.content is a object, which cannot become JSON"),
            ({"role": "user", "content": b"x"}, "message.content is a bytes"),
            ({"role": "user", "content": {1, 2}}, "message.content is a set"),
            ({"role": "user", "content": "x", "metadata": {"a": {"b": 1j}}}, "message.metadata.a.b is a complex"),
            ({"role": "user", "content": {("a", "b"): 1}}, "message.content has a key of type tuple"),
            ({"role": "user", "content": nested(MAX_DEPTH + 1)}, f"nested deeper than {MAX_DEPTH} levels"),
            ({"role": "user", "content": nested(100_000)}, f"nested deeper than {MAX_DEPTH} levels"),
            ({"role": "user", "content": [10**5000]}, "is an integer of 16610 bits; pass it as a string"),
        ],
    )
    def test_what_cannot_be_kept_is_refused_with_its_reason(self, message: Any, text: str) -> None:
        """A refusal is a ValueError that says what was seen."""
        with pytest.raises(MessageError) as refused:
            normalise(message)
        assert text in str(refused.value)
        assert isinstance(refused.value, ValueError)
        assert len(str(refused.value)) < 300

    def test_a_row_that_holds_itself_is_refused(self) -> None:
        """Self-reference ends in an error, not in a crash."""
        content: list[Any] = []
        content.append(content)
        message: dict[str, Any] = {"role": "user", "content": "x"}
        message["metadata"] = {"self": message}
        for bad in ({"role": "user", "content": content}, message):
            with pytest.raises(MessageError, match="nested deeper"):
                normalise(bad)

    def test_a_recursion_that_the_interpreter_stops_is_refused_as_too_deep(self) -> None:
        """A mapping that makes new mappings for ever is refused like any other that is too deep."""

        class Deep(dict[str, Any]):
            def items(self) -> Any:
                raise RecursionError

        with pytest.raises(MessageError, match="nested deeper"):
            normalise({"role": "user", "content": Deep(a=1)})

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "user", "content": {10**5000: "x"}},
            {"role": "user", "content": "x", 10**5000: 1},
            {"role": "user", "content": [[[[[{10**5000: "x"}]]]]]},
            {"role": 10**5000, "content": "x"},
            {"role": "tool", "tool_call_id": 10**5000, "content": "x"},
            {"role": "user", "content": [TextBlock]},
            {"role": "user", "content": [TextBlock(text="x", extra=object())]},  # type: ignore[call-arg]
            {"role": "user", "content": [TextBlock(text="x", extra=b"\xff\xfe")]},  # type: ignore[call-arg]
        ],
        ids=["key", "top key", "deep key", "role", "tool id", "class", "block with an object", "block with bytes"],
    )
    def test_odd_values_are_refused_as_message_errors_too(self, message: Any) -> None:
        """Whatever cannot become JSON is refused by us, with a text of ours, never by a stray error."""
        with pytest.raises(MessageError):
            normalise(message)

    def test_a_refused_row_is_left_as_it_was(self) -> None:
        """Nothing of a refused row is changed."""
        message = {"role": "user", "content": [{"type": "text", "text": "x"}], "metadata": {"bad": b"x"}}
        before = copy.deepcopy(message)
        with pytest.raises(MessageError):
            normalise(message)
        assert message == before

    def test_the_deepest_row_that_is_kept_passes_json_and_a_view(self) -> None:
        """At the limit everything still works."""
        raw = normalise({"role": "user", "content": "x", "other": nested(MAX_DEPTH)})
        json.dumps(raw)
        shown = view_row(analyse(raw))
        assert shown is not None
        Message(**shown)

    def test_pydantic_blocks_become_dicts(self) -> None:
        """Host code hands over blocks of the host's models."""
        kept = normalise(
            {
                "role": "assistant",
                "content": [
                    TextBlock(text="Let me look."),
                    ThinkingBlock(thinking="p", signature="s"),
                    ToolCallBlock(id="a", name="weather", input={"city": "Oslo"}),
                ],
            }
        )
        assert [block["type"] for block in kept["content"]] == ["text", "thinking", "tool_call"]
        assert all(type(block) is dict for block in kept["content"])
        assert kept["content"][2]["input"] == {"city": "Oslo"}
        assert analyse(kept).calls == (Call("a", "weather", {"city": "Oslo"}),)
        answered = normalise({"role": "user", "content": [ToolResultBlock(tool_call_id="a", output={"t": 21})]})
        assert analyse(answered).result_ids == ("a",)
        assert view_row(analyse(normalise(user([ImageBlock(source={"data": PNG})])))) is not None

    def test_mappings_and_subclasses_become_plain_values(self) -> None:
        """Any mapping is taken; subclasses of str become str."""

        class Word(StrEnum):
            HI = "hi"

        kept = normalise(MappingProxyType({"role": "user", "content": Word.HI, "x": OrderedDict(a=True), "f": 1.5}))
        assert kept == {"role": "user", "content": "hi", "x": {"a": True}, "f": 1.5}
        assert type(kept) is dict
        assert type(kept["content"]) is str
        assert type(kept["x"]) is dict

    def test_large_integers_that_json_takes_are_kept(self) -> None:
        """Only what the JSON encoder refuses is refused."""
        kept = normalise({"role": "user", "content": "x", "n": 10**4000})
        assert json.loads(json.dumps(kept)) == kept

    def test_floats_of_other_kinds_are_kept(self) -> None:
        """A subclass of float is a number like any other."""

        class Degrees(float):
            pass

        assert normalise({"role": "user", "content": "x", "t": Degrees(2.5)})["t"] == 2.5

    def test_tuples_are_kept_and_copied(self) -> None:
        """Deep-equal means that a tuple stays one; what is inside is no longer shared."""
        inner = {"a": 1}
        kept = normalise({"role": "user", "content": "x", "t": (inner, 2)})
        inner["a"] = 9
        assert kept["t"] == ({"a": 1}, 2)

    @pytest.mark.parametrize("role", ROLES)
    def test_every_role_of_the_host_is_taken(self, role: str) -> None:
        """The roles are those of the host's Message."""
        assert normalise({"role": role, "content": "x", "tool_call_id": "a"})["role"] == role


def containers(value: Any) -> list[Any]:
    """Every dict and list in a value, itself included; tuples are looked into."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    found = [inner for part in parts for inner in containers(part)]
    return [value, *found] if isinstance(value, dict | list) else found


class TestCopyJson:
    def test_dicts_and_lists_are_copied_at_every_depth(self) -> None:
        """Changing a copy changes nothing in the original."""
        value = {"a": [{"b": [1, {"c": 2}]}], "d": "x"}
        copied = copy_json(value)
        assert copied == value
        copied["a"][0]["b"][1]["c"] = 3
        assert value["a"][0]["b"][1]["c"] == 2  # type: ignore[index]
        assert copy_json("x") == "x"

    def test_what_is_inside_a_tuple_is_copied_too(self) -> None:
        """Tuples are kept on the way in, so their dicts must not be shared on the way out."""
        value = {"k": ({"a": 1},)}
        copy_json(value)["k"][0]["a"] = 2
        assert value == {"k": ({"a": 1},)}

    @pytest.mark.parametrize(
        "value",
        [
            {},
            {"a": "x", "n": 1, "none": None},
            {"a": [{"b": [1, {"c": 2}], "d": {}}], "t": ({"x": []},)},
            [1, [2, [3]]],
        ],
    )
    def test_a_copy_by_shape_is_the_same_copy(self, value: Any) -> None:
        """Equal, and no container of it is shared."""
        copied = copy_shaped(value, shape_of(value))
        assert copied == value == copy_json(value)
        ours, theirs = {id(part) for part in containers(value)}, {id(part) for part in containers(copied)}
        assert len(theirs) == len(ours)
        assert not ours & theirs


class TestAnalyse:
    @pytest.mark.parametrize(
        ("raw", "rendered", "is_user", "pinned"),
        [
            (user("x"), True, True, False),
            (assistant("x"), True, False, False),
            ({"role": "function", "name": "f", "content": "x"}, True, False, False),
            ({"role": "system", "content": "x"}, False, False, True),
            ({"role": "developer", "content": "x"}, False, False, True),
            (hook("x"), False, False, False),
            (hook("x", "user"), False, False, False),
            (hook("x", "developer"), False, False, False),
            ({**user("x"), "metadata": {"ephemeral": True}}, False, False, False),
            ({**user("x"), "ephemeral": True}, False, False, False),
            ({"role": "system", "content": "x", "ephemeral": True}, False, False, False),
            ({**user("x"), "metadata": {"critical": True}}, True, True, True),
            ({**assistant("x"), "critical": True}, True, False, True),
            ({**hook("x"), "critical": True}, False, False, False),
            ({**user("x"), "critical": True, "ephemeral": True}, False, False, False),
            ({**user("x"), "metadata": {"critical": "yes", "ephemeral": 1}}, True, True, False),
            ({**user("x"), "metadata": None}, True, True, False),
            ({**user("x"), "metadata": {"source": "tool"}}, True, True, False),
            (ANTHROPIC_RESULTS, True, False, False),
            (result("a"), True, False, False),
        ],
    )
    def test_marks_say_what_is_rendered_a_user_message_or_a_pin(
        self, raw: JsonRow, rendered: bool, is_user: bool, pinned: bool
    ) -> None:
        """System, developer, hook and ephemeral rows are not rendered; hook rows are never pins."""
        found = row(raw)
        assert (found.rendered, found.user, found.pinned) == (rendered, is_user, pinned)

    def test_system_rows_are_pins_only_while_they_are_preserved(self) -> None:
        """preserve_system false lets them go; a critical one stays."""
        system = {"role": "system", "content": "x"}
        assert not row(system, preserve_system=False).pinned
        assert row({**system, "critical": True}, preserve_system=False).pinned

    def test_ephemeral_is_read_from_both_places(self) -> None:
        """metadata.ephemeral and top-level ephemeral mean the same."""
        assert row({**user("x"), "ephemeral": True}).ephemeral
        assert row({**user("x"), "metadata": {"ephemeral": True}}).ephemeral
        assert not row(user("x")).ephemeral

    @pytest.mark.parametrize("raw", [BLOCK_CALL, LOOP_CALL, OPENAI_CALL, ANTHROPIC_CALL])
    def test_calls_are_read_in_all_shapes_and_once(self, raw: JsonRow) -> None:
        """A call that stands as block and in tool_calls is one call; a JSON string is data."""
        assert row(raw).calls == (Call("a", "weather", {"city": "Oslo"}),)

    def test_entries_may_name_tool_and_arguments_otherwise(self) -> None:
        """Flat entries occur with name and input as well."""
        raw = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "n", "input": {"q": 1}}]}
        assert row(raw).calls == (Call("a", "n", {"q": 1}),)

    def test_arguments_that_are_no_json_stay_text_and_none_becomes_empty(self) -> None:
        """What the model wrote is kept as it is."""
        entries = [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
            {"id": "b", "type": "function", "function": {"name": None}},
            {"id": "c", "tool": "f", "arguments": "[" * 100_000},
        ]
        found = row({"role": "assistant", "content": "", "tool_calls": entries}).calls
        assert found[0].arguments == "{broken"
        assert (found[1].name, found[1].arguments) == ("", {})
        assert found[2].arguments == "[" * 100_000

    def test_ids_that_repeat_are_as_many_calls_as_they_are_made(self) -> None:
        """Two blocks of one id are two calls, and two entries beside them are the same two."""
        twice = calls(("x", "f", {"n": 1}), ("x", "f", {"n": 2}))
        assert [c.arguments for c in row(twice).calls] == [{"n": 1}, {"n": 2}]
        thrice = {**twice, "tool_calls": [*twice["tool_calls"], {"id": "x", "tool": "f", "arguments": {"n": 3}}]}
        assert [c.arguments for c in row(thrice).calls] == [{"n": 1}, {"n": 2}, {"n": 3}]

    def test_numeric_ids_are_text_everywhere(self) -> None:
        """Hand-written transcripts use numbers: 7 and "7" are one id."""
        raw = {
            "role": "assistant",
            "content": [{"type": "tool_call", "id": 7, "name": "f", "input": {}}],
            "tool_calls": [{"id": "7", "tool": "f", "arguments": {}}],
        }
        assert [c.id for c in row(raw).calls] == ["7"]
        assert row({"role": "tool", "tool_call_id": 7, "content": "x"}).result_ids == ("7",)

    def test_entries_and_blocks_without_a_usable_id_are_no_calls(self) -> None:
        """Without an id no result could ever answer."""
        raw = {
            "role": "assistant",
            "content": [{"type": "tool_call", "name": "f", "input": {}}, {"type": 5}],
            "tool_calls": ["x", {"tool": "f"}, {"id": None}, {"id": False}],
        }
        assert row(raw).calls == ()
        assert row({"role": "assistant", "content": "", "tool_calls": "x"}).calls == ()

    def test_calls_and_results_of_rows_that_are_not_rendered_do_not_count(self) -> None:
        """A hook's row opens no group and answers no call."""
        assert row({**call("a"), "metadata": {"source": "hook"}}).calls == ()
        assert row({**result("a"), "metadata": {"source": "hook"}}).result_ids == ()
        assert row({**call("a"), "role": "user"}).calls == ()
        assert row({**ANTHROPIC_RESULTS, "role": "assistant"}).result_ids == ()

    def test_results_are_read_in_both_shapes(self) -> None:
        """Tool rows, and tool_result blocks under either name of the id."""
        assert row(result("a")).result_ids == ("a",)
        assert row(ANTHROPIC_RESULTS).result_ids == ("a", "b")
        blocks = [{"type": "tool_result", "tool_call_id": "a", "output": 1}, {"type": "tool_result"}]
        assert row(user(blocks)).result_ids == ("a",)

    def test_a_row_that_holds_a_tool_result_is_no_user_message_even_without_an_id(self) -> None:
        """DESIGN: a user message holds no tool result; one without an id is none of the user's words either."""
        assert not row(user([{"type": "tool_result", "content": "whose?"}])).user


class TestText:
    def test_content_text_is_the_public_text_of_every_shape(self) -> None:
        """Thinking is left out, images become a note, data becomes JSON."""
        assert content_text("x") == "x"
        assert content_text(None) == ""
        assert content_text({"b": 1, "a": "ö"}) == '{"a": "ö", "b": 1}'
        assert content_text(5) == "5"
        blocks = [
            SIGNED,
            "plain",
            {"type": "output_text", "text": "said"},
            {"type": "text", "text": ["a", None]},
            {"type": "tool_result", "output": {"t": 1}},
            {"type": "tool_result", "content": "inner"},
            {"type": "novel", "x": 1},
            5,
            {"type": "redacted_thinking", "data": "s"},
            {"type": "reasoning", "content": [], "summary": ["s"]},
        ]
        assert content_text(blocks) == 'plain\nsaid\na\nnull\n{"t": 1}\ninner\n{"type": "novel", "x": 1}\n5'

    def test_json_text_is_the_same_on_every_machine(self) -> None:
        """Keys are sorted; keys that cannot be sorted give text all the same."""
        assert compact_json({"b": 1, "a": [1, "é"]}) == '{"a": [1, "é"], "b": 1}'
        assert compact_json({"a": 1, 5: 2}) == "{'a': 1, 5: 2}"


class TestRenderParts:
    def test_a_call_is_shown_by_name_and_arguments_once(self) -> None:
        """Stored twice, shown once, after the text."""
        assert render_parts(row(LOOP_CALL), {}, ()) == [
            (False, "Let me look."),
            (False, 'call weather({"city": "Oslo"})'),
        ]

    @pytest.mark.parametrize("raw", [OPENAI_CALL, ANTHROPIC_CALL])
    def test_a_call_reads_the_same_in_every_shape(self, raw: JsonRow) -> None:
        """The summariser, and with it the key, does not see how a host stored the call."""
        assert render_parts(row(raw), {}, ()) == [(False, 'call weather({"city": "Oslo"})')]

    def test_an_abandoned_call_is_named(self) -> None:
        """The summariser learns that no result was recorded."""
        found = row(call("a", "weather"))
        assert render_parts(found, {}, found.calls)[-1] == (False, f"[call weather: {NO_RESULT}]")

    def test_results_are_marked_as_such_and_orphans_say_so(self) -> None:
        """Only results are shortened later, so they are told apart."""
        assert render_parts(row(result("a", "21")), {"a": "weather"}, ()) == [(True, "21")]
        assert render_parts(row(result("a", "21")), {}, ()) == [(True, "[result without a call] 21")]
        assert render_parts(row(ANTHROPIC_RESULTS), {"a": "weather"}, ()) == [
            (True, "result of weather: 21 degrees"),
            (True, "[result without a call] rain"),
            (False, "and now?"),
        ]

    def test_thinking_metadata_and_empty_parts_are_left_out(self) -> None:
        """Private reasoning and opaque state never reach the summariser."""
        raw = {
            **assistant([SIGNED, {"type": "text", "text": ""}, {"type": "text", "text": "Done"}]),
            "thinking_block": {"thinking": "private"},
            "metadata": {"openai:reasoning_items": ["rs_2"]},
        }
        assert render_parts(row(raw), {}, ()) == [(False, "Done")]
        assert render_parts(row(assistant(None)), {}, ()) == []

    def test_call_blocks_without_an_id_are_shown_as_text(self) -> None:
        """Nothing is lost by plumbing."""
        raw = assistant([{"type": "tool_call", "name": "f", "input": {"q": 1}}])
        assert '"name": "f"' in render_parts(row(raw), {}, ())[0][1]


class TestCountable:
    def test_a_call_that_is_stored_twice_is_counted_once(self) -> None:
        """The provider sends it once."""
        assert countable(LOOP_CALL) == (["Let me look.", "weather", '{"city": "Oslo"}'], [])
        assert countable(OPENAI_CALL) == (["weather", '{"city": "Oslo"}'], [])
        two = {**LOOP_CALL, "tool_calls": [*LOOP_CALL["tool_calls"], {"id": "b", "tool": "f", "arguments": {}}]}
        assert countable(two)[0][-2:] == ["f", "{}"]

    def test_images_are_given_apart_from_texts(self) -> None:
        """An image is charged by its size rules; those inside results too."""
        raw = user([{"type": "text", "text": "see"}, IMAGE, {"type": "tool_result", "content": [IMAGE, "done"]}])
        texts, images = countable(raw)
        assert texts == ["see", "done"]
        assert images == [IMAGE, IMAGE]

    def test_thinking_is_charged_although_it_is_not_shown(self) -> None:
        """Providers replay it."""
        raw = assistant(
            [
                SIGNED,
                {"type": "redacted_thinking", "data": "xx"},
                {"type": "reasoning", "content": ["c"], "summary": []},
                {"type": "tool_result", "output": {"t": 1}},
            ]
        )
        assert countable(raw)[0] == ["private", "xx", '["c"]', '{"t": 1}']

    def test_other_contents_are_counted_as_their_text(self) -> None:
        """Nothing, data and strings."""
        assert countable({"role": "user"}) == ([], [])
        assert countable(user({"a": 1})) == (['{"a": 1}'], [])
        assert countable(user("x")) == (["x"], [])


class TestViewRow:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_view_row_passes_the_hosts_message(self, shape: str) -> None:
        """DESIGN rule 3, and the original stays as it came."""
        raw = normalise(SHAPES[shape])
        found = analyse(raw)
        shown = view_row(found, list(found.result_ids))
        assert shown is not None
        Message(**shown)
        assert raw == SHAPES[shape]
        assert shown["role"] == raw["role"] or (raw["role"] == "tool" and not found.rendered)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_changing_a_view_row_changes_nothing_in_the_history(self, shape: str) -> None:
        """A view is copied down to its content blocks."""
        raw = normalise(SHAPES[shape])
        found = analyse(raw)
        shown = view_row(found, list(found.result_ids))
        assert shown is not None
        spoil(shown)
        assert raw == SHAPES[shape]

    def test_a_view_row_shares_nothing_that_stands_in_a_tuple(self) -> None:
        """Tuples are kept in the history, so what they hold is copied for a view as well."""
        raw = normalise({**user("x"), "metadata": {"k": ({"a": 1},)}})
        shown = view_row(analyse(raw))
        assert shown is not None
        shown["metadata"]["k"][0]["a"] = 2
        assert raw["metadata"] == {"k": ({"a": 1},)}

    def test_plain_rows_and_rows_of_the_hosts_loops_are_shown_as_they_are(self) -> None:
        """Blocks and tool_calls stay together, metadata and extra keys pass."""
        for raw in (user("x"), LOOP_CALL, SHAPES["tool named"], SHAPES["assistant thinking_block"], hook("x")):
            assert view(raw, ["a"]) == raw

    def test_thinking_is_untouched(self) -> None:
        """A signed block that was changed is refused by its provider."""
        raw = assistant(
            [
                SIGNED,
                {"type": "redacted_thinking", "data": "xx"},
                {"type": "reasoning", "content": [], "summary": ["s"], "encrypted": "e"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            ]
        )
        assert view(raw)["content"][:3] == raw["content"][:3]

    def test_thinking_is_untouched_beside_arguments_with_odd_keys(self) -> None:
        """Assistant rows with calls stay whole, whatever else has to be mended."""
        raw = assistant([SIGNED, {"type": "tool_call", "id": "a", "name": "f", "input": {5: 1}}])
        shown = view(raw)
        assert SIGNED in shown["content"]
        assert [block["type"] for block in shown["content"]] == ["thinking", "tool_call"]

    def test_a_tool_use_block_becomes_a_tool_call(self) -> None:
        """Message refuses tool_use; extra keys of the block stay."""
        raw = assistant([{"type": "tool_use", "id": 7, "name": None, "input": '{"q": 1}', "cache_control": {"t": 1}}])
        assert view(raw)["content"] == [
            {"type": "tool_call", "id": "7", "name": "", "input": {"q": 1}, "cache_control": {"t": 1}}
        ]

    def test_arguments_that_are_no_object_are_wrapped(self) -> None:
        """Message wants a dict."""
        raw = assistant([{"type": "tool_call", "id": "a", "name": "f", "input": [1]}])
        assert view(raw)["content"][0]["input"] == {"value": [1]}

    def test_a_tool_result_block_gets_the_hosts_keys(self) -> None:
        """tool_use_id and content become tool_call_id and output."""
        assert view(ANTHROPIC_RESULTS, ["a", "b"])["content"] == [
            {"type": "tool_result", "tool_call_id": "a", "output": [{"type": "text", "text": "21 degrees"}]},
            {"type": "tool_result", "tool_call_id": "b", "output": "rain"},
            {"type": "text", "text": "and now?"},
        ]
        assert view(user([{"type": "tool_result", "tool_use_id": "a"}]), ["a"])["content"][0]["output"] == ""

    @pytest.mark.parametrize("odd", [{5: 1}, {"visibility": "everybody"}], ids=["key", "visibility"])
    def test_a_result_block_with_odd_keys_still_answers_its_call(self, odd: dict[Any, Any]) -> None:
        """Rule 2: what must be mended for the host may not cost the pair."""
        raw = user([{"type": "tool_result", "tool_use_id": "a", "content": "r", **odd}])
        content = view(raw, ["a"])["content"]
        assert isinstance(content, list)
        assert [(block["type"], block.get("tool_call_id")) for block in content] == [("tool_result", "a")]

    def test_results_that_answer_nothing_are_left_out(self) -> None:
        """Orphans and second results are rendered, not shown."""
        assert view_row(row(result("a"))) is None
        assert view_row(row(result("a")), []) is None
        assert view(ANTHROPIC_RESULTS, ["a"])["content"][1:] == [{"type": "text", "text": "and now?"}]
        second = user([{"type": "tool_result", "tool_use_id": "a", "content": text} for text in ("one", "two")])
        assert [block["output"] for block in view(second, ["a"])["content"]] == ["one"]
        assert view_row(row(second), []) is None

    def test_a_tool_row_of_a_hook_is_shown_as_user_text(self) -> None:
        """It answers no call, so it may not stand as a result."""
        assert view(SHAPES["hook tool"]) == {"role": "user", "content": "x", "metadata": {"source": "hook"}}
        assert view(SHAPES["ephemeral tool"]) == {"role": "user", "content": "x"}

    def test_calls_of_a_hook_are_shown_as_text(self) -> None:
        """Nobody would answer them."""
        shown = view(SHAPES["hook assistant with calls"])
        assert [block["type"] for block in shown["content"]] == ["text"]
        assert "tool_calls" not in shown

    @pytest.mark.parametrize("content", [{}, {"content": None}])
    def test_missing_and_none_content_become_empty(self, content: JsonRow) -> None:
        """Message refuses both."""
        assert view({"role": "assistant", **content})["content"] == ""

    @pytest.mark.parametrize(
        ("block", "shown"),
        [
            (
                {"type": "image_url", "image_url": {"url": "https://e.com/a.png"}},
                {"type": "image", "source": {"type": "url", "url": "https://e.com/a.png"}},
            ),
            ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, IMAGE),
            (IMAGE, IMAGE),
            ({"type": "image_url"}, {"type": "text", "text": "[image: image, 0 bytes]"}),
            ({"type": "input_text", "text": "x"}, {"type": "text", "text": "x"}),
            ({"type": "novel", "x": 1}, {"type": "text", "text": '{"type": "novel", "x": 1}'}),
            ("x", {"type": "text", "text": "x"}),
            ({"type": "tool_use", "name": "f"}, {"type": "text", "text": '{"name": "f", "type": "tool_use"}'}),
            ({"type": "tool_result", "content": "r"}, {"type": "text", "text": "r"}),
        ],
    )
    def test_blocks_that_the_host_does_not_know_are_converted(self, block: Any, shown: JsonRow) -> None:
        """image_url becomes image; everything unknown becomes text."""
        assert view(user([block]))["content"] == [shown]

    def test_contents_of_other_kinds_become_json_text(self) -> None:
        """A dict as content is refused by Message."""
        assert view(user({"b": 1, "a": 2}))["content"] == '{"a": 2, "b": 1}'
        assert view(SHAPES["tool dict"], ["a"])["content"] == '{"temp_c": 21}'

    def test_ids_of_a_pair_are_equal_in_the_view(self) -> None:
        """Rule 2 as a provider reads it: the id of the call, wherever it stands, is that of its result."""
        made = view({"role": "assistant", "content": "", "tool_calls": [{"id": 7, "tool": "f", "arguments": {}}]})
        answer = view({"role": "tool", "tool_call_id": 7, "content": "x"}, ["7"])
        assert answer["tool_call_id"] == "7"
        assert [entry["id"] for entry in made["tool_calls"]] == ["7"]

    def test_entries_without_an_id_are_no_calls_of_a_view(self) -> None:
        """Rule 2: a call that no result can answer may not stand in a view."""
        entries = [{"tool": "f", "arguments": {}}, {"id": "a", "tool": "f", "arguments": {}}]
        shown = view({"role": "assistant", "content": "", "tool_calls": entries})
        assert [entry.get("id") for entry in shown["tool_calls"]] == ["a"]

    def test_broken_keys_are_left_out_and_nothing_else(self) -> None:
        """Wrong types and keys that are no strings go; the words stay."""
        assert view(SHAPES["broken keys"]) == {"role": "user", "content": "x"}
        assert view(SHAPES["broken metadata"])["metadata"] == {"1": 2, "a": 3}
        assert view({**result("a"), "name": 5}, ["a"]) == {"role": "tool", "tool_call_id": "a", "content": "ok"}

    def test_what_cannot_be_mended_is_shown_as_text_calls_and_ids(self) -> None:
        """Block by block: what the host refuses goes, words, calls and ids stay."""
        odd = {"type": "text", "text": "said", "visibility": "everybody"}
        said = {"type": "text", "text": "said"}
        assert view(user([odd])) == {"role": "user", "content": [said]}
        shown = view({"role": "tool", "tool_call_id": "a", "content": [odd]}, ["a"])
        assert shown == {"role": "tool", "tool_call_id": "a", "content": [said]}
        entries = [{"id": "a", "tool": "f", "arguments": {"q": 1}}, {"id": "b", "tool": "f", "arguments": [1]}]
        made = view({"role": "assistant", "content": [odd], "tool_calls": entries})
        assert made == {"role": "assistant", "content": [said], "tool_calls": entries}


def spoil(value: Any) -> None:
    """Change a value in place, wherever that is possible."""
    for item in list(value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()):
        spoil(item)
    if isinstance(value, dict):
        value["spoiled"] = True
    elif isinstance(value, list):
        value.append("spoiled")


class TestSynthetic:
    def test_a_synthetic_result_answers_its_call_and_says_what_it_is(self) -> None:
        """An abandoned call gets a result row that the host takes."""
        made = synthetic_result(Call("a", "weather", {}))
        assert made["tool_call_id"] == "a"
        assert made["content"] == NO_RESULT
        assert made["metadata"]["source"] == SOURCE
        Message(**made)

    def test_the_continuation_id_goes_and_nothing_else(self) -> None:
        """With it the server would restore what compaction removed."""
        raw = normalise(LOOP_CALL)
        shown = without_continuation(view(raw))
        assert shown["metadata"] == {"openai:status": "completed"}
        assert shown["content"] == raw["content"]
        assert raw == LOOP_CALL

    @pytest.mark.parametrize("raw", [user("x"), {**user("x"), "metadata": {"a": 1}}, {**user("x"), "metadata": None}])
    def test_a_row_without_a_continuation_id_is_unchanged(self, raw: JsonRow) -> None:
        """Nothing to take away."""
        assert without_continuation(copy.deepcopy(raw)) == raw
