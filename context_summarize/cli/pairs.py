"""Reads settings given as KEY=VALUE, one or several in one option."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from context_summarize.cli.terminal import Refused
from context_summarize.config import SETTINGS

_NEXT_PAIR = re.compile(r"[,\s]+(?=[A-Za-z_]+\s*=)")


def read_pairs(given: str) -> dict[str, Any]:
    """The settings of pairs such as `keep_recent=20 compact_threshold=0.6`, separated by spaces or commas.

    A value is read as JSON if it is valid JSON, else as text; `none` is no value. A separator within quotation marks or
    brackets is a part of a value. The settings are not checked.

    Raises:
        Refused: a setting has no value, or is given twice.
    """
    settings: dict[str, Any] = {}
    for item in _split(given.strip()):
        key, sign, text = (part.strip() for part in item.partition("="))
        if not sign:
            raise Refused(f"--config {item!r} has no value; expected KEY=VALUE, such as keep_recent=20")
        value = _value(text)
        if value == text and (bare := _bare_setting(text)) is not None:
            raise Refused(f"--config {given!r}: {bare} has no value; expected KEY=VALUE, such as keep_recent=20")
        if key in settings:
            raise Refused(f"--config {given!r} gives {key} twice; keep one of them")
        settings[key] = value
    return settings


def _split(text: str) -> Iterator[str]:
    begin = 0
    for found in _NEXT_PAIR.finditer(text):
        item = text[begin : found.start()]
        if item.count('"') % 2 == 0 and item.count("[") == item.count("]") and item.count("{") == item.count("}"):
            yield item
            begin = found.end()
    yield text[begin:]


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _bare_setting(text: str) -> str | None:
    """A setting that stands behind a value without one of its own; None if there is none."""
    words = text.replace(",", " ").split()
    return next((word for word in words[1:] if word in SETTINGS), None)
