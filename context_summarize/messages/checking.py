"""`normalise`: checks and copies a row that a host adds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from context_summarize.errors import MessageError
from context_summarize.messages.reading import id_of
from context_summarize.messages.rows import MAX_DEPTH, MAX_INT_BITS, ROLES, JsonRow

_SCALARS = (str, int, float, bool, type(None))


def _checked_copy(value: Any, where: str, depth: int) -> Any:
    if value is None or type(value) is str or isinstance(value, bool | float):
        return value
    if depth > MAX_DEPTH:
        raise MessageError(f"{where} is nested deeper than {MAX_DEPTH} levels; flatten it or pass it as a JSON string")
    if isinstance(value, Mapping):
        return {
            _checked_key(key, where): _checked_copy(item, f"{where}.{str(key)[:40]}" if depth < 4 else where, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        copied = [_checked_copy(item, where, depth + 1) for item in value]
        return tuple(copied) if isinstance(value, tuple) else copied
    if isinstance(value, int):
        return _checked_int(value, where)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, BaseModel):
        try:
            data = value.model_dump(mode="json")
        except (ValueError, TypeError, RecursionError) as error:  # its serialisers are foreign code
            raise MessageError(f"{where} is a {type(value).__name__} that cannot become JSON: {error}") from None
        return _checked_copy(data, where, depth + 1)
    raise MessageError(
        f"{where} is a {type(value).__name__}, which cannot become JSON; pass text, numbers, lists or dicts"
    )


def _checked_key(key: Any, where: str) -> Any:
    if type(key) is str:
        return sys.intern(key)  # rows parsed from JSON have their own copy of every key
    if not isinstance(key, _SCALARS):
        raise MessageError(f"{where} has a key of type {type(key).__name__}; pass strings as keys")
    return _checked_int(key, f"a key of {where}") if isinstance(key, int) else key


def _checked_int(value: int, where: str) -> int:
    if value.bit_length() > MAX_INT_BITS:
        raise MessageError(f"{where} is an integer of {value.bit_length()} bits; pass it as a string")
    return value


def normalise(message: Any) -> JsonRow:
    """Checks a row and copies it deeply; pydantic blocks become dicts.

    Raises:
        MessageError: the row is no dict, has no known role, lacks the id of its call, or holds what cannot become JSON.
    """
    if not isinstance(message, Mapping):
        raise MessageError(f"a message must be a dict, got {type(message).__name__}")
    role = message.get("role")
    if role is None:
        raise MessageError(f"a message must have a role; expected one of {', '.join(ROLES)}")
    if not isinstance(role, str) or role not in ROLES:
        shown = repr(role)[:60] if isinstance(role, str) else f"of type {type(role).__name__}"
        hint = f"; did you mean {role.lower()!r}?" if isinstance(role, str) and role.lower() in ROLES else ""
        raise MessageError(f"unknown role {shown}; expected one of {', '.join(ROLES)}{hint}")
    given = message.get("tool_call_id")
    if role == "tool" and not id_of(given):
        shown = repr(given)[:60] if given is None or isinstance(given, str) else f"a {type(given).__name__}"
        raise MessageError(f"a tool message needs the id of its call in tool_call_id, got {shown}")
    row: JsonRow = _checked_copy(message, "message", 0)
    row["role"] = sys.intern(row["role"])
    return row
