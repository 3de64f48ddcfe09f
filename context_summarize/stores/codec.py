"""Summaries and records of compactions as text, the form in which every persistent store keeps them."""

from __future__ import annotations

import dataclasses
import json
import zlib
from base64 import b64decode, b64encode
from typing import Any

from pydantic import TypeAdapter

from context_summarize.core.nodes import Summary
from context_summarize.messages.rows import JsonRow

_SUMMARY = TypeAdapter(Summary)
_FIELDS = {field.name for field in dataclasses.fields(Summary)}


def summary_text(summary: Summary) -> str:
    """One summary as ASCII text; `summary_of` returns an equal one."""
    # Not by pydantic: a tool's output may hold lone surrogates, which its writer and its reader of JSON refuse.
    return json.dumps(_SUMMARY.dump_python(summary), separators=(",", ":"))


def summary_of(text: str | bytes) -> Summary | None:
    """The summary that was written; None for a text that is damaged, cut off, or of other fields."""
    try:
        fields: Any = json.loads(text)
        return _SUMMARY.validate_python(fields) if fields.keys() == _FIELDS else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def record_text(record: JsonRow) -> str:
    """One record as ASCII text, compressed: each holds a row of notes, and the address of every summary."""
    return b64encode(zlib.compress(json.dumps(record, separators=(",", ":")).encode())).decode()


def record_of(text: str | bytes) -> JsonRow | None:
    """The record that was written; None for a text that is damaged or cut off."""
    try:
        record: JsonRow = json.loads(zlib.decompress(b64decode(text)))
    except (ValueError, TypeError, RecursionError, zlib.error):
        return None
    return record
