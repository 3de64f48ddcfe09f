"""`TextStore`: what the stores share that keep summaries and records as JSON text."""

from __future__ import annotations

import dataclasses
import json
import zlib
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from pydantic import TypeAdapter

from context_summarize.core.nodes import CompactionRecord, Summary

_BATCH = 500  # keys in one query: old SQLite versions take at most 999 values
_MOST_RECORDS = 3  # the caller adopts the first that fits, mostly the very first


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


class TextStore(ABC):
    """A store of summaries over one that reads and writes text. An entry that cannot be read counts as missing."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """The stored summaries among `keys`."""
        return {found.key: found for found in await self._find(Summary, "summary", keys, len(keys))}

    async def put(self, summary: Summary) -> None:
        """Keep one summary. Raises `ValueError` if it is a fallback summary."""
        if summary.fallback:
            raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")
        await self._write("summary", summary.key, encode(summary))

    async def find_records(self, hashes: Sequence[str]) -> list[CompactionRecord]:
        """The first three records with one of these running hashes, in the order given."""
        return await self._find(CompactionRecord, "record", hashes, _MOST_RECORDS)

    async def put_record(self, record: CompactionRecord) -> None:
        """Keep one record; an earlier one of the same hash is replaced."""
        await self._write("record", record.hash, encode(record))

    async def _find(self, kind: type[EntryT], name: str, keys: Sequence[str], most: int) -> list[EntryT]:
        found: list[EntryT] = []
        wanted = list(dict.fromkeys(keys))
        while wanted and len(found) < most:
            batch, wanted = wanted[:_BATCH], wanted[_BATCH:]
            texts = await self._read(name, batch)
            entries = (decode(kind, texts[key]) for key in batch if key in texts)
            found += islice((entry for entry in entries if entry is not None), most - len(found))
        return found

    @abstractmethod
    async def _read(self, name: str, keys: Sequence[str]) -> Mapping[str, str | bytes]:
        """The texts of one kind among at most 500 keys."""

    @abstractmethod
    async def _write(self, name: str, key: str, text: str) -> None:
        """Keep one text; an earlier one of the same kind and key is replaced."""
