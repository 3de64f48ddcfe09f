"""Bytes that outlive a version: keys of summaries and stored entries, as every later version must have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.session_files import read_session
from context_summarize.stores.codec import FORMAT, decode_record, decode_summary, encode_record, encode_summary
from context_summarize.stores.memory import MemoryStore
from context_summarize.tokens.counter import TokenCounter
from tests.support.paths import ROOT

PINNED = Path(__file__).with_name("pinned.json")


class _Kept(MemoryStore):
    """A store that shows what was put into it, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries: list[Any] = []
        self.records: list[Any] = []

    async def put(self, summary: Any) -> None:
        self.summaries.append(summary)
        await super().put(summary)

    async def put_record(self, record: Any) -> None:
        self.records.append(record)
        await super().put_record(record)


async def _session() -> _Kept:
    """The first 700 rows of the example in a small window: segments, rests, merges and several records."""
    store = _Kept()
    provider = OfflineProvider(TokenCounter().count, context_window=14_000, max_output_tokens=1_000)
    shares: dict[str, Any] = {"compact_threshold": 0.7, "target_usage": 0.4, "summary_share": 0.25, "action_share": 0}
    manager = SummarizingContextManager(store=store, prefetch_threshold=None, **shares)
    for row in read_session(ROOT / "examples" / "airline-desk.jsonl")[:700]:
        if row["role"] == "assistant":
            await manager.get_messages_for_request(provider=provider)
        await manager.add_message(row)
    await manager.close()
    return store


def _entry(text: str) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(text)
    entry.pop("created")
    return entry


async def seen() -> dict[str, Any]:
    """What this version makes of the session."""
    store = await _session()
    merged = next(summary for summary in store.summaries if summary.level)
    return {
        "keys": sorted({f"{summary.level} {summary.key}" for summary in store.summaries}),
        "summary": _entry(encode_summary(merged)),
        "record": _entry(encode_record(store.records[-1])),
    }


@pytest.fixture(scope="module")
def pinned() -> dict[str, Any]:
    """What an earlier version has left behind."""
    found: dict[str, Any] = json.loads(PINNED.read_text("utf-8"))
    return found


async def test_keys_and_stored_entries_keep_every_byte(pinned: dict[str, Any]) -> None:
    """Summaries that users have paid for are found again by a later version, and their records adopted."""
    made = await seen()
    # The pinned record also names rows that no view shows any more; they are left out by now.
    made["record"]["elided"] = pinned["record"]["elided"]
    assert made == {name: pinned[name] for name in made}


def test_entries_of_earlier_versions_are_read(pinned: dict[str, Any]) -> None:
    """Written, read and written again: the same entry."""
    summary, record = ({**pinned[name], "created": 1.5} for name in ("summary", "record"))

    assert _entry(encode_summary(decode_summary(json.dumps(summary)))) == pinned["summary"]
    assert _entry(encode_record(decode_record(json.dumps(record)))) == pinned["record"]


def test_entries_of_the_format_before_are_read(pinned: dict[str, Any]) -> None:
    """Facts without their words are read with empty ones, and what has been added since is empty."""
    summary, record = ({**pinned["earlier"][name], "created": 1.5} for name in ("summary", "record"))
    added: dict[str, Any] = {"actions": "", "pinned": [], "ahead": [], "session": None}

    facts = [[*fact, "", "", "", False] for fact in summary["ledger"]]
    again = json.loads(encode_summary(decode_summary(json.dumps(summary))))
    assert again == {**summary, "format": FORMAT, "ledger": facts}
    again = json.loads(encode_record(decode_record(json.dumps(record))))
    assert again == {**record, "format": FORMAT, **added}
