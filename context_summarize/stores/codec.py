"""Summaries and records of compactions as JSON text, the form in which every persistent store keeps them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args

from context_summarize.core.nodes import CompactionRecord, Node, SessionMarks, Span, Summary
from context_summarize.facts.fact import Fact, FactKind

FORMAT = 3
"""Version of the form below. Every change of a stored field needs a new one: entries of later versions are not read."""
_ADDED: Mapping[int, Mapping[str, Any]] = {2: {"actions": "", "pinned": [], "ahead": [], "session": None}}
"""Earlier version that is read → fields that it lacks, with what they are taken for. Its facts have four values."""

_Read: TypeAlias = Callable[[Any], Any]
"""JSON value → field; raises `DamagedEntry`."""

_KINDS = get_args(FactKind)


class DamagedEntry(ValueError):
    """A stored text is no entry of this format; the message says what is wrong. The entry may be deleted."""


class OtherFormat(DamagedEntry):
    """The entry has another format version, which another release reads: ignore it, but do not delete it."""


def check_key(asked: str, own: str) -> None:
    """Raises `DamagedEntry` where an entry that was read under one key says that it has another."""
    if own != asked:
        raise DamagedEntry("expected an entry of its own key, got one of another key")


def encode_summary(summary: Summary) -> str:
    """One summary as ASCII text; `decode_summary` returns an equal one."""
    return _encode(summary, _SUMMARY, _SUMMARY_NAMES)


def decode_summary(text: str) -> Summary:
    """The summary that `encode_summary` has encoded.

    Raises:
        OtherFormat: the text comes from another format version.
        DamagedEntry: the text is anything else, or was cut off.
    """
    return Summary(**_decode(text, _SUMMARY, _SUMMARY_NAMES))


def encode_record(record: CompactionRecord) -> str:
    """One record of a compaction as ASCII text; `decode_record` returns an equal one."""
    return _encode(record, _RECORD, _RECORD_NAMES)


def decode_record(text: str) -> CompactionRecord:
    """The record that `encode_record` has encoded.

    Raises:
        OtherFormat: the text comes from another format version.
        DamagedEntry: the text is anything else, or was cut off.
    """
    return CompactionRecord(**_decode(text, _RECORD, _RECORD_NAMES))


def _encode(value: Any, fields: Mapping[str, _Read], names: Mapping[str, str]) -> str:
    entry = {"format": FORMAT, **{name: getattr(value, names.get(name, name)) for name in fields}}
    # ASCII, because a tool's output may hold lone surrogates, which no database accepts as text.
    return json.dumps(entry, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_bare)


def _bare(value: Any) -> list[Any]:
    # There are many facts and nodes, and a record holds whole trees: values in order, without names.
    return [getattr(value, field.name) for field in dataclasses.fields(value)]


def _decode(text: str, fields: Mapping[str, _Read], names: Mapping[str, str]) -> dict[str, Any]:
    if not isinstance(text, str) or not text.isascii():
        raise DamagedEntry(f"expected an entry in ASCII, got {type(text).__name__} with other characters")
    try:
        entry = _checked(json.loads(text), fields)
        return {names.get(name, name): _field(name, read, entry[name]) for name, read in fields.items()}
    except DamagedEntry:
        raise
    except (ValueError, RecursionError) as error:  # no JSON, a number of thousands of digits, thousands of brackets
        raise DamagedEntry(f"expected an entry in JSON, got {len(text)} characters: {error}") from None


def _checked(entry: Any, fields: Mapping[str, _Read]) -> dict[str, Any]:
    if type(entry) is not dict:
        raise _wrong("an object", entry)
    version = entry.pop("format", None)
    if type(version) is not int:
        raise _wrong("a format version", version)
    if version != FORMAT and version not in _ADDED:
        raise OtherFormat(f"expected an entry of format {FORMAT}, got format {version}")
    entry |= {name: value for name, value in _ADDED.get(version, {}).items() if name in fields}
    if entry.keys() != fields.keys():
        odd = ", ".join(sorted(entry.keys() ^ fields.keys()))
        raise DamagedEntry(f"expected the fields of format {FORMAT}, these are missing or unknown: {odd:.200}")
    return entry


def _field(name: str, read: _Read, value: Any) -> Any:
    try:
        return read(value)
    except DamagedEntry as error:
        raise DamagedEntry(f"field {name}: {error}") from None


def _wrong(expected: str, value: object) -> DamagedEntry:
    return DamagedEntry(f"expected {expected}, got {type(value).__name__}")


def _exactly(kind: type, expected: str) -> _Read:
    def read(value: Any) -> Any:
        if type(value) is not kind:  # isinstance would let True pass as a number
            raise _wrong(expected, value)
        return value

    return read


_text = _exactly(str, "text")
_whole = _exactly(int, "a whole number")
_flag = _exactly(bool, "true or false")


def _number(value: Any) -> float:
    if type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise _wrong("a finite number", value)
    return value


def _kind(value: Any) -> FactKind:
    if value not in _KINDS:
        raise _wrong(f"one of {', '.join(_KINDS)}", value)
    kind: FactKind = value
    return kind


def _or_none(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


def _many(read: _Read) -> _Read:
    def read_all(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _wrong("a list", value)
        return tuple(map(read, value))

    return read_all


def _row(*reads: _Read) -> _Read:
    def read_each(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(reads):
            raise _wrong(f"a list of {len(reads)} values", value)
        return tuple(read(part) for read, part in zip(reads, value, strict=True))

    return read_each


def _counts(value: Any) -> dict[str, int]:
    if type(value) is not dict:
        raise _wrong("an object", value)
    return {name: _whole(count) for name, count in value.items()}


def _fact(value: Any) -> Fact:
    is_bare = type(value) is list and len(value) == _BARE_LENGTH
    return Fact(*(_BARE_FACT if is_bare else _FACT)(value))


def _node(value: Any) -> Node:
    return Node(*_NODE(value))


_BARE_FACT = _row(_kind, _text, _whole, _flag)
_BARE_LENGTH = 4
_FACT = _row(_kind, _text, _whole, _flag, _text, _text, _text, _flag)
_NODE = _row(_text, _whole, _whole, _whole, _whole, _whole, _whole, _many(_node), _or_none(_text))

_SUMMARY: Mapping[str, _Read] = {
    "key": _text,
    "level": _whole,
    "text": _text,
    "ledger": _many(_fact),
    "tokens": _whole,
    "source_tokens": _whole,
    "digest": _flag,
    "provider": _or_none(_text),
    "model": _or_none(_text),
    "usage": _counts,
    "cost_usd": _or_none(_text),
    "created": _number,
    "coverage": _number,
    "rules": _many(_text),
}

_PINS = _many(_row(_whole, _text))
_SPAN = _row(_whole, _text, _text)
_MARKS = _row(
    _text,
    _many(lambda value: Span(*_SPAN(value))),
    lambda value: Span(*_SPAN(value)),
    _PINS,
    _many(_text),
    _or_none(_whole),
)

_RECORD: Mapping[str, _Read] = {
    "digest": _text,
    "frontier_group": _whole,
    "rendered_groups": _whole,
    "segment_tokens": _whole,
    "summary_tokens": _whole,
    "nodes": _many(_node),
    "elided": _many(_row(_whole, _whole, _whole, _text)),
    "newest_user": _or_none(_whole),
    "created": _number,
    "actions": _text,
    "pinned": _PINS,
    "ahead": _many(_node),
    "session": _or_none(lambda value: SessionMarks(*_MARKS(value))),
}

_SUMMARY_NAMES = {"digest": "fallback", "rules": "directives"}
"""Field of a stored summary → attribute, where they differ: stored fields keep their names."""
_RECORD_NAMES = {"digest": "hash", "elided": "shortened"}
