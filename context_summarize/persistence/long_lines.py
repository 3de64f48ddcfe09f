"""JSON with very long strings, written and read in pieces: between two of them other threads have their turn."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

_LONG = 500_000
"""Characters of a string that is written and read by itself, in pieces of so many."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dumped(value: Any) -> Iterator[str]:
    """The value as JSON, in pieces."""
    if not _holds_long(value):
        yield _encode(value)
    elif isinstance(value, str):
        yield '"'
        for at in range(0, len(value), _LONG):
            yield _encode(value[at : at + _LONG])[1:-1]
        yield '"'
    elif isinstance(value, dict):
        for at, (key, item) in enumerate(value.items()):
            yield ("," if at else "{") + _encode({key: 0})[1:-2]
            yield from dumped(item)
        yield "}"
    else:
        for at, item in enumerate(value):
            yield "," if at else "["
            yield from dumped(item)
        yield "]"


def _holds_long(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > _LONG
    if isinstance(value, dict):
        return any(map(_holds_long, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_long, value))


def decoded(line: bytes) -> str:
    """The text of a line in UTF-8; lone surrogates stay as they are.

    Raises:
        ValueError: it is no UTF-8.
    """
    if len(line) <= _LONG:
        return line.decode("utf-8", "surrogatepass")
    decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    pieces = [decoder.decode(line[at : at + _LONG]) for at in range(0, len(line), _LONG)]
    return "".join([*pieces, decoder.decode(b"", final=True)])


def loaded(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is no JSON.
    """
    if len(text) <= _LONG:
        return json.loads(text)
    mark = "long string"
    while mark in text:
        mark += "-"
    rest: list[str] = []
    strings: list[str] = []
    at = written = 0
    while (begin := text.find('"', at)) >= 0:
        at = _after_string(text, begin)
        if at - begin > _LONG:
            rest += [text[written:begin], f'"{mark}{len(strings)}"']
            strings.append("".join(json.loads(f'"{piece}"') for piece in _pieces(text, begin + 1, at - 1)))
            written = at
    return _with_strings(json.loads("".join([*rest, text[written:]])), mark, strings)


def _after_string(text: str, begin: int) -> int:
    """The place after a string that begins here."""
    at = begin
    while (at := text.find('"', at + 1)) >= 0:
        first = at
        while text[first - 1] == "\\":
            first -= 1
        if (at - first) % 2 == 0:
            return at + 1
    return len(text)


def _pieces(text: str, start: int, end: int) -> Iterator[str]:
    """A string's JSON in pieces that cut no escape in two, nor two escapes that are one character together."""
    while end - start > _LONG:
        stop = start + _LONG
        while stop > start and (text[stop - 1] == "\\" or "\\u" in text[stop - 11 : stop]):
            stop -= 1
        if stop == start:
            break
        yield text[start:stop]
        start = stop
    yield text[start:end]


def _with_strings(value: Any, mark: str, strings: list[str]) -> Any:
    if isinstance(value, str):
        return strings[int(value[len(mark) :])] if value.startswith(mark) else value
    if isinstance(value, dict):
        return {_with_strings(key, mark, strings): _with_strings(item, mark, strings) for key, item in value.items()}
    return [_with_strings(item, mark, strings) for item in value] if isinstance(value, list) else value
