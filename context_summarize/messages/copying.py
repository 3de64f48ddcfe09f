"""Copies of rows: deep ones, and quick ones of rows whose shape is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from context_summarize.messages.rows import JsonRow

CONTAINERS = (dict, list, tuple)
Shape: TypeAlias = "tuple[tuple[Any, Shape], ...]"
"""(key or position, shape) of each container within a container."""
_TUPLE: Shape = (("tuple", ()),)
"""Stands for the shape of a tuple, which is rare and is copied by looking at it."""


def copy_json(value: Any) -> Any:
    """Copy dicts and lists at every depth; text and numbers are shared. For values that `normalise` has passed."""
    if isinstance(value, dict):
        return {k: copy_json(v) if isinstance(v, CONTAINERS) else v for k, v in value.items()}
    if isinstance(value, list):
        return [copy_json(v) if isinstance(v, CONTAINERS) else v for v in value]
    if isinstance(value, tuple):
        return tuple(copy_json(v) for v in value)
    return value


def shape_of(value: JsonRow | list[Any]) -> Shape:
    """The places of the containers within a dict or list, so that `copy_shaped` need not search for them again."""
    items: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    found = ((key, item) for key, item in items if isinstance(item, CONTAINERS))
    return tuple((key, _TUPLE if isinstance(item, tuple) else shape_of(item)) for key, item in found)


def copy_shaped(value: Any, shape: Shape) -> Any:
    """The same as `copy_json`, but faster: only the containers that the shape names are copied."""
    copy = value.copy()
    for key, inner in shape:
        if not inner:
            copy[key] = copy[key].copy()
        elif inner is _TUPLE:
            copy[key] = copy_json(copy[key])
        else:
            copy[key] = copy_shaped(copy[key], inner)
    return copy
