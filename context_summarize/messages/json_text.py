"""JSON that is equal for equal data, in one step or, of large values, in many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from context_summarize.background import Steps

LARGE = 100_000
"""Characters of a value above which its JSON is written in pieces of about so many."""
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str).encode
_FAILURES = (TypeError, ValueError, RecursionError)


def compact_json(value: Any) -> str:
    """JSON with sorted keys, so that equal data gives equal text on every machine."""
    try:
        return _encode(value)
    except _FAILURES:
        return repr(value)


def saved_json(value: Any) -> str:
    """The same without None, which hosts do not save: a summary's key must not depend on it."""
    text = compact_json(value)
    try:
        return compact_json(_without_none(value)) if "null" in text else text
    except RecursionError:
        return text


def json_start(value: Any, chars: int) -> str:
    """The first so many characters of `compact_json`; of a large value no more than that is written.

    A large value that JSON cannot hold starts as JSON, as far as it goes.
    """
    if not holds_more(value, LARGE):
        return compact_json(value)[:chars]
    start = ""
    try:
        for piece in _pieces(value):
            start += piece
            if len(start) >= chars:
                break
    except _FAILURES:
        start = compact_json(value)
    return start[:chars]


def compact_json_steps(value: Any) -> Steps[list[str]]:
    """`compact_json` in pieces, one a step; together they are its text."""
    if not holds_more(value, LARGE):
        return [compact_json(value)]
    try:
        return (yield from _listed(value))
    except _FAILURES:
        return [compact_json(value)]


def saved_json_steps(value: Any) -> Steps[list[str]]:
    """`saved_json` in pieces, one a step; together they are its text."""
    if not holds_more(value, LARGE):
        return [saved_json(value)]
    try:
        found = yield from _listed(value)
        return (yield from _listed(_without_none(value))) if _holds_none(value) else found
    except _FAILURES:
        return [saved_json(value)]


def holds_more(value: Any, chars: int) -> bool:
    """True if the texts and items of a value take more than about so many characters. It looks no further."""
    try:
        return _left(value, chars) < 0
    except RecursionError:
        return False


def _left(value: Any, chars: int) -> int:
    """What is left of so many characters after the value; negative where they do not do."""
    if isinstance(value, str):
        return chars - len(value)
    items: Iterable[Any] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, dict):
        items = value.items()
    chars -= 4  # brackets or a number
    for item in items:
        chars = _left(item, chars)
        if chars < 0:
            break
    return chars


def _listed(value: Any) -> Steps[list[str]]:
    pieces: list[str] = []
    for piece in _pieces(value):
        pieces.append(piece)
        yield
    return pieces


def _pieces(value: Any) -> Iterator[str]:
    """JSON in pieces. The escapes of a text are those of its pieces, one after the other.

    Raises: as the encoder.
    """
    if isinstance(value, str):
        yield '"'
        for at in range(0, len(value), LARGE):
            yield _encode(value[at : at + LARGE])[1:-1]
        yield '"'
    elif isinstance(value, dict):
        yield "{"
        for at, run in enumerate(_runs(sorted(value.items(), key=lambda pair: pair[0]))):
            yield ", " if at else ""
            if len(run) > 1 or not holds_more(run, LARGE):
                yield _encode(dict(run))[1:-1]
            else:
                yield _encode({run[0][0]: 0})[1:-2]
                yield from _pieces(run[0][1])
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for at, run in enumerate(_runs(value)):
            yield ", " if at else ""
            if len(run) > 1 or not holds_more(run, LARGE):
                yield _encode(run)[1:-1]
            else:
                yield from _pieces(run[0])
        yield "]"
    else:
        yield _encode(value)


def _runs(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Neighbours that are written at once; what is large stands alone."""
    run: list[Any] = []
    left = LARGE
    for item in items:
        left = _left(item, left)
        if left < 0 and run:
            yield run
            run, left = [], _left(item, LARGE)
        run.append(item)
    if run:
        yield run


def _holds_none(value: Any) -> bool:
    if isinstance(value, dict):
        return any(item is None or _holds_none(item) for item in value.values())
    return isinstance(value, list | tuple) and any(item is None or _holds_none(item) for item in value)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value
