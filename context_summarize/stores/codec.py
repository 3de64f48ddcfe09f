"""Summaries and records of compactions as JSON text, the form in which every persistent store keeps them."""

from __future__ import annotations

import dataclasses
import json
import zlib
from base64 import b64decode, b64encode
from typing import Any, TypeVar

from pydantic import TypeAdapter

from context_summarize.core.nodes import CompactionRecord, Summary

EntryT = TypeVar("EntryT", Summary, CompactionRecord)

_ADAPTERS: dict[type, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in (Summary, CompactionRecord)}


def encode(entry: Summary | CompactionRecord) -> str:
    """One entry as ASCII text; `decode` returns an equal one."""
    fields = _ADAPTERS[type(entry)].dump_python(entry)
    if fields.get("notes"):
        fields["notes"] = b64encode(zlib.compress(fields["notes"].encode("utf-8", "surrogatepass"))).decode()
    # Not by pydantic: a tool's output may hold lone surrogates, which its writer and its reader of JSON refuse.
    return json.dumps(fields, separators=(",", ":"))


def decode(kind: type[EntryT], text: str | bytes) -> EntryT | None:
    """The entry that was encoded; None for a text that is damaged, cut off, or of other fields."""
    try:
        fields = json.loads(text)
        if fields.get("notes"):
            fields["notes"] = zlib.decompress(b64decode(fields["notes"])).decode("utf-8", "surrogatepass")
        entry: EntryT = _ADAPTERS[kind].validate_python(fields)
    except (ValueError, TypeError, AttributeError, RecursionError, zlib.error):
        return None
    return entry if fields.keys() == {field.name for field in dataclasses.fields(kind)} else None
