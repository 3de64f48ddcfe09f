"""`copy_json`: a deep copy of a row."""

from __future__ import annotations

from typing import Any

_CONTAINERS = (dict, list, tuple)


def copy_json(value: Any) -> Any:
    """Copy dicts and lists at every depth; text and numbers are shared. For values that `normalise` has passed."""
    if isinstance(value, dict):
        return {k: copy_json(v) if isinstance(v, _CONTAINERS) else v for k, v in value.items()}
    if isinstance(value, list):
        return [copy_json(v) if isinstance(v, _CONTAINERS) else v for v in value]
    if isinstance(value, tuple):
        return tuple(copy_json(v) for v in value)
    return value
