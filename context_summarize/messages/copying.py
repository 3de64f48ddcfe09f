"""`copy_json`: a deep copy of a row."""

from __future__ import annotations

from typing import Any

_CONTAINERS = (dict, list, tuple)


def copy_json(value: Any) -> Any:
    """Copy dicts and lists at every depth; text and numbers are shared. For values that `normalise` has passed."""
    if isinstance(value, dict):
        out = value.copy()  # most values are texts, which need no look
        for key, item in value.items():
            if type(item) in _CONTAINERS:
                out[key] = copy_json(item)
        return out
    if isinstance(value, list):
        return [copy_json(item) if type(item) in _CONTAINERS else item for item in value]
    if isinstance(value, tuple):
        return tuple(map(copy_json, value))
    return value
