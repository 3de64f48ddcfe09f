"""Data as JSON has it: as text that is equal for equal data, and as a deep copy."""

from __future__ import annotations

import json
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str).encode


def compact_json(value: Any) -> str:
    """JSON with sorted keys, so that equal data gives equal text on every machine."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def saved_json(value: Any) -> str:
    """The same without None, which hosts do not save: a summary's key must not depend on it."""
    text = compact_json(value)
    return compact_json(_without_none(value)) if "null" in text else text


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value


def copy_json(value: Any) -> Any:
    """Copy dicts and lists at every depth; text and numbers are shared. For values that `normalise` has passed."""
    if isinstance(value, dict):
        return {key: item if type(item) is str else copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in value]
    return tuple(map(copy_json, value)) if isinstance(value, tuple) else value
