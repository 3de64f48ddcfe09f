"""The protocol of stores of summaries, the store in memory, and the base of stores that keep entries as text."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from cachetools import LRUCache
from pydantic import TypeAdapter

from context_summarize.background import in_thread
from context_summarize.core.nodes import Summary
from context_summarize.messages.rows import JsonRow

T = TypeVar("T")


class SummaryStore(Protocol):
    """Keeps summaries by key, and records of compactions by hash. Fallback summaries are never put here."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        """Returns the stored summaries among `keys`."""

    async def put(self, summary: Summary) -> None:
        """Keeps one summary; an entry of the same key is replaced. Raises `ValueError` if it is a fallback summary."""

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        """Returns the stored records among those of these hashes."""

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        """Keeps one record, JSON data; an earlier one of the same hash is replaced."""

    async def close(self) -> None:
        """Closes the store. A later call opens it again."""


class MemoryStore:
    """A `SummaryStore` in memory, bounded in bytes: the least recently used entries go first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._summaries: LRUCache[str, Summary] = LRUCache(max_bytes, getsizeof=_bytes)
        self._records: LRUCache[str, JsonRow] = LRUCache(max_bytes // 8, getsizeof=_bytes)

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        return {key: summary for key in keys if (summary := self._summaries.get(key)) is not None}

    async def put(self, summary: Summary) -> None:
        _refuse_fallback(summary)
        with suppress(ValueError):  # larger than the store
            self._summaries[summary.key] = summary

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        return {hash_: record for hash_ in hashes if (record := self._records.get(hash_)) is not None}

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        with suppress(ValueError):
            self._records[hash_] = record

    async def close(self) -> None:
        """Does nothing: nothing is open."""


def _refuse_fallback(summary: Summary) -> None:
    if summary.fallback:
        raise ValueError(f"a fallback summary is never stored, got one for key {summary.key[:12]}")


def _bytes(entry: Summary | JsonRow) -> int:
    return 2 * len(repr(entry))  # a rough figure is enough to bound the memory


_SUMMARY = TypeAdapter(Summary)
_FIELDS = {field.name for field in dataclasses.fields(Summary)}


def _record_of(text: str | bytes) -> JsonRow | None:
    """Returns the stored record; None for a text that is damaged or cut off."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _summary_of(text: str | bytes) -> Summary | None:
    """Returns the stored summary; None for a text that is no record either, or has other fields."""
    fields = _record_of(text)
    try:
        return _SUMMARY.validate_python(fields) if fields and fields.keys() == _FIELDS else None
    except ValueError:
        return None


class TextStore(ABC):
    """A `SummaryStore` that keeps entries as text. An entry that cannot be read counts as missing."""

    async def get(self, keys: Sequence[str]) -> dict[str, Summary]:
        return await self._find("summary", keys, _summary_of)

    async def put(self, summary: Summary) -> None:
        _refuse_fallback(summary)
        # Not by pydantic's JSON: it refuses lone surrogates, which a tool's output may contain.
        text = json.dumps(_SUMMARY.dump_python(summary), separators=(",", ":"))
        await self._write("summary", summary.key, text)

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        return await self._find("record", hashes, _record_of)

    async def put_record(self, hash_: str, record: JsonRow) -> None:
        await self._write("record", hash_, json.dumps(record, separators=(",", ":")))

    async def _find(self, kind: str, keys: Sequence[str], entry_of: Callable[[str | bytes], T | None]) -> dict[str, T]:
        texts = await self._read(kind, list(dict.fromkeys(keys)))
        entries = await in_thread(sum(map(len, texts.values())), lambda: list(map(entry_of, texts.values())))
        return {key: entry for key, entry in zip(texts, entries, strict=True) if entry is not None}

    @abstractmethod
    async def _read(self, name: str, keys: Sequence[str]) -> Mapping[str, str | bytes]:
        """Returns the texts of one kind among the keys."""

    @abstractmethod
    async def _write(self, name: str, key: str, text: str) -> None:
        """Keeps one text; an earlier one of the same kind and key is replaced."""
