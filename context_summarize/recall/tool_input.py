"""Reads what a model gives a tool: fields of text, also where models send them in another form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def text_fields(
    given: Any, known: Sequence[str], *, choice: str, as_text: Callable[[Any], Any], refuse: Callable[[str], Exception]
) -> dict[str, str]:
    """The fields that are filled in, stripped. Empty values count as not given: some models fill in every field.

    Args:
        known: names of the fields.
        choice: how the error for an unknown field names them.
        as_text: reads the field `messages`, which models also send as numbers.
        refuse: makes an error from its text.

    Raises:
        Exception: what `refuse` makes: the input has an unknown field, or a value that is not text.
    """
    if not isinstance(given, Mapping):
        raise refuse(f"the input must be an object, got {type(given).__name__}")
    values: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(name, str) and name.startswith("_"):
            continue  # hosts add their own fields to the model's input, such as _tool_call_id
        if name not in known:
            raise refuse(f"unknown field {str(name)[:40]!r}; give {choice}")
        if name == "messages":
            value = as_text(value)
        if value is not None and not isinstance(value, str):
            raise refuse(f"{name} must be text, got {type(value).__name__}")
        if value and value.strip():
            values[name] = value.strip()
    return values


def number_as_text(value: Any) -> Any:
    """A whole number as the text that it stands for; any other value as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:d}" if value.bit_length() < 64 else "too many"
    return value
