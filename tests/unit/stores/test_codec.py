"""Entries as text: exact round trips, and one error for any text that is no entry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_summarize.core.nodes import CompactionRecord, Node, SessionMarks, Span, Summary
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.stores.codec import (
    FORMAT,
    DamagedEntry,
    OtherFormat,
    decode_record,
    decode_summary,
    encode_record,
    encode_summary,
)

texts = st.text(st.characters(), max_size=30)  # lone surrogates included
wholes = st.integers(-(2**70), 2**70)
numbers = st.floats(allow_nan=False, allow_infinity=False)
facts = st.builds(Fact, st.sampled_from(get_args(FactKind)), texts, wholes)
summaries = st.builds(
    Summary,
    key=texts,
    level=wholes,
    text=texts,
    ledger=st.lists(facts, max_size=4).map(tuple),
    tokens=wholes,
    source_tokens=wholes,
    fallback=st.booleans(),
    provider=st.none() | texts,
    model=st.none() | texts,
    usage=st.dictionaries(texts, wholes, max_size=4),
    cost_usd=st.none() | texts,
    created=numbers,
    coverage=numbers,
    directives=st.lists(texts, max_size=4).map(tuple),
)


def node_over(children: st.SearchStrategy[tuple[Node, ...]]) -> st.SearchStrategy[Node]:
    sizes = [wholes] * 6
    return st.builds(Node, texts, *sizes, children=children, focus=st.none() | texts)


nodes = st.recursive(
    node_over(st.just(())), lambda below: node_over(st.lists(below, max_size=3).map(tuple)), max_leaves=6
)
pairs = st.lists(st.tuples(wholes, texts), max_size=2).map(tuple)
spans = st.builds(Span, wholes, texts, texts)
records = st.builds(
    CompactionRecord,
    hash=texts,
    frontier_group=wholes,
    rendered_groups=wholes,
    segment_tokens=wholes,
    summary_tokens=wholes,
    nodes=st.lists(nodes, max_size=3).map(tuple),
    shortened=st.lists(st.tuples(wholes, wholes, wholes, texts), max_size=3).map(tuple),
    newest_user=st.none() | wholes,
    created=numbers,
    pinned=pairs,
    ahead=st.lists(nodes, max_size=2).map(tuple),
    session=st.none()
    | st.builds(
        SessionMarks,
        running=texts,
        spans=st.lists(spans, max_size=3).map(tuple),
        after=spans,
        pins=pairs,
        undone=st.lists(texts, max_size=2).map(tuple),
        held_at=st.none() | wholes,
    ),
)

SUMMARY = Summary("k", 1, "text", (Fact("path", "a/b.py", 2),), 5, 50, usage={"attempts": 1}, directives=("be brief",))
RECORD = CompactionRecord(
    "d",
    3,
    9,
    512,
    100,
    (Node("n", 1, -1, 0, 3, 150, 0, (Node("c", 0, 0, 0, 3, 100, 512),), "focus"),),
    ((1, 0, 64, "ab"),),
)


MARKED = replace(
    RECORD,
    pinned=((1, "ab"),),
    session=SessionMarks("r", (Span(2, "a", "b"),), Span(1, "c", "d"), ((0, "e"),), ("f",), 7),
)


def types_below(value: Any) -> Any:
    """The value with every leaf replaced by its type."""
    if isinstance(value, tuple):
        return tuple(map(types_below, value))
    if isinstance(value, Fact | Node | Summary | CompactionRecord | SessionMarks | Span):
        return type(value), [types_below(getattr(value, name)) for name in type(value).__slots__]
    return type(value)


class TestRoundTrip:
    @given(summaries)
    @example(replace(SUMMARY, text="\ud800 alone, \x00, \u2028"))
    def test_a_summary_survives_whole(self, summary: Summary) -> None:
        """Every field, with any text in it, is encoded as ASCII and decoded to an equal value."""
        text = encode_summary(summary)
        assert text.isascii()
        assert decode_summary(text) == summary
        assert types_below(decode_summary(text)) == types_below(summary)

    @given(records)
    def test_a_record_survives_whole(self, record: CompactionRecord) -> None:
        """Trees of nodes and shortened rows included."""
        text = encode_record(record)
        assert text.isascii()
        assert decode_record(text) == record
        assert types_below(decode_record(text)) == types_below(record)

    def test_a_whole_number_of_seconds_survives(self) -> None:
        """Whoever makes a value by hand writes no decimal point."""
        assert decode_record(encode_record(replace(RECORD, created=3))) == replace(RECORD, created=3)

    def test_a_tree_as_deep_as_sessions_make_it_survives(self) -> None:
        """Sixty levels are more than any session reaches: each stands for several nodes of the one below."""
        node = Node("leaf", 0, 0, 0, 1, 100, 512)
        for level in range(1, 60):
            node = Node(f"k{level}", level, 0, 0, 1, 100, 0, (node,))
        record = replace(RECORD, nodes=(node,))
        assert decode_record(encode_record(record)) == record


DECODERS: list[tuple[Callable[[str], Any], str, type]] = [
    (decode_summary, encode_summary(SUMMARY), Summary),
    (decode_record, encode_record(RECORD), CompactionRecord),
]
both = pytest.mark.parametrize(("decode", "text", "kind"), DECODERS, ids=["summary", "record"])


def changed(text: str, /, **fields: Any) -> str:
    return json.dumps({**json.loads(text), **fields})


class TestDamage:
    @both
    def test_an_entry_that_was_cut_off_is_damaged(self, decode, text, kind) -> None:
        """At every length."""
        for end in range(len(text)):
            with pytest.raises(DamagedEntry):
                decode(text[:end])

    @given(st.data())
    def test_damage_gives_one_error_or_a_value_of_right_types(self, data: st.DataObject) -> None:
        """Characters flipped, cut out or put in; never another exception."""
        decode, text, kind = data.draw(st.sampled_from(DECODERS))
        start = data.draw(st.integers(0, len(text) - 1))
        end = data.draw(st.integers(start, min(len(text), start + 5)))
        damaged = text[:start] + data.draw(st.text(max_size=3)) + text[end:]
        try:
            found = decode(damaged)
        except DamagedEntry:
            return
        # Reading is strict, so that what survives the way there and back holds the right types in every field.
        assert type(found) is kind
        encode: Callable[[Any], str] = encode_summary if kind is Summary else encode_record
        assert decode(encode(found)) == found

    @given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
    @example("[" * 100_000)
    @example("9" * 10_000)
    @example(f'{{"format":{FORMAT}}}')
    @example("null")
    def test_any_other_text_is_damaged(self, text: str) -> None:
        """No JSON, JSON of another shape, numbers and brackets by the thousand."""
        for decode, _, _ in DECODERS:
            with pytest.raises(DamagedEntry):
                decode(text)

    def test_nodes_nested_without_end_are_damaged(self) -> None:
        """A stack that overflows is an error of the entry."""
        node: list[Any] = ["k", 0, 0, 0, 1, 100, 512, [], None]
        for _ in range(400):
            node = ["k", 1, 0, 0, 1, 100, 0, [node], None]
        with pytest.raises(DamagedEntry):
            decode_record(changed(encode_record(RECORD), nodes=[node]))

    @both
    @pytest.mark.parametrize("version", [FORMAT + 1, FORMAT - 2, 0])
    def test_an_entry_of_another_format_is_told_apart(self, decode, text, kind, version) -> None:
        """It is not guessed at, whatever its fields, and the error names both versions."""
        theirs = changed(text, format=version)
        for entry in (theirs, changed(theirs, surplus=1), f'{{"format":{version}}}'):
            with pytest.raises(OtherFormat, match=f"format {FORMAT}, got format {version}"):
                decode(entry)

    @both
    @pytest.mark.parametrize("version", [None, "1", True, 1.0])
    def test_what_is_no_version_is_damage(self, decode, text, kind, version) -> None:
        """No release writes it."""
        with pytest.raises(DamagedEntry, match="expected a format version") as caught:
            decode(changed(text, format=version))
        assert type(caught.value) is DamagedEntry

    @both
    def test_every_field_is_wanted_and_no_other(self, decode, text, kind) -> None:
        """Missing and unknown fields are named."""
        fields = json.loads(text)
        for name in fields:
            with pytest.raises(DamagedEntry, match=name):
                decode(json.dumps({key: value for key, value in fields.items() if key != name}))
        with pytest.raises(DamagedEntry, match="surplus"):
            decode(changed(text, surplus=1))

    @both
    def test_a_value_of_a_wrong_type_is_damaged_and_its_field_named(self, decode, text, kind) -> None:
        """In every field; the error never quotes the value, which may be what a user wrote."""
        for name in json.loads(text).keys() - {"format"}:
            for wrong in ({"secret words": None}, [["secret words"]], 2.5, True):
                if not fits(kind, name, wrong):
                    with pytest.raises(DamagedEntry, match=f"field {name}: expected ") as caught:
                        decode(changed(text, **{name: wrong}))
                    assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        "wrong",
        [["colour", "red", 1], ["id", "A1"], ["id", "A1", "1"], ["id", "A1", True], "id", None, [["id"], "A1", 1]],
    )
    def test_a_fact_of_another_shape_is_damaged(self, wrong) -> None:
        """Its kind is one of the known ones."""
        with pytest.raises(DamagedEntry, match="ledger"):
            decode_summary(changed(DECODERS[0][1], ledger=[wrong]))

    @pytest.mark.parametrize("wrong", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400])
    def test_a_number_without_end_is_damaged(self, wrong) -> None:
        """JSON has no such number, and none fits a float."""
        with pytest.raises(DamagedEntry, match="created: expected a finite number"):
            decode_summary(DECODERS[0][1].replace('"created":0.0', f'"created":{wrong}'))

    def test_a_summary_is_no_record(self) -> None:
        """Neither is read as the other."""
        with pytest.raises(DamagedEntry):
            decode_record(DECODERS[0][1])
        with pytest.raises(DamagedEntry):
            decode_summary(DECODERS[1][1])

    @pytest.mark.parametrize("entry", [b"{}", None, 3, encode_summary(SUMMARY).encode()])
    def test_what_is_no_text_is_damaged(self, entry) -> None:
        """A damaged database hands out values of other types."""
        with pytest.raises(DamagedEntry, match="ASCII"):
            decode_summary(entry)


def fits(kind: type, name: str, value: object) -> bool:
    """True for the few values above that are right in a field."""
    return (name in {"created", "coverage"} and value == 2.5) or ((kind, name) == (Summary, "digest") and value is True)
