"""The contract that every store keeps, one run for each kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from context_summarize.core.nodes import Summary
from context_summarize.stores import MemoryStore, SqliteStore, SummaryStore, open_store

FACTORIES: Mapping[str, Callable[[Path], SummaryStore]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "cache" / "store.sqlite3"),
    "what a file's path opens": lambda folder: open_store(str(folder / "cache" / "store.sqlite3")),
}
"""Name → what makes a new, empty store, in a new folder that it may use. The caller closes the store."""


def summary(key: str, text: str = "Goal: none", *, fallback: bool = False) -> Summary:
    usage = {"input_tokens": 345, "output_tokens": 12, "attempts": 2}
    return Summary(key, 1, text, 12, 345, fallback, provider="main", model="small", usage=usage, cost_usd="0.0012")


def record(number: int = 0) -> Any:
    """A record as sessions put it: JSON. `number` tells records apart."""
    return {"rows": number, "cut": {"forced_ends": [3, 7], "share": 0.5, "is_bare": False, "focus": None}, "pins": []}


@pytest.fixture(params=FACTORIES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, no_hang: None) -> AsyncIterator[SummaryStore]:
    made = FACTORIES[request.param](tmp_path)
    yield made
    await made.close()


def keys(count: int) -> list[str]:
    return [f"key {at}" for at in range(count)]


class TestContract:
    async def test_what_is_put_is_got_back_whole_and_nothing_else(self, store):
        """Field for field. Reading comes first in most sessions."""
        assert await store.get(["a"]) == await store.get([]) == {}
        assert await store.get_records(["d"]) == await store.get_records([]) == {}
        made = {summary.key: summary for summary in (summary("a"), summary("b", ""))}
        records = {f"record {number}": record(number) for number in range(4)}
        for each in made.values():
            await store.put(each)
        for hash_, each in records.items():
            await store.put_record(hash_, each)
        assert await store.get(["x", *made, "a"]) == made
        assert await store.get_records(["x", *records, "y"]) == records
        assert await store.get(("a",)) == {"a": summary("a")}

    async def test_the_newest_of_a_key_wins_and_a_key_is_no_hash(self, store):
        """A later compaction at the same place replaces the earlier one."""
        for text, number in (("a text", 3), ("another text", 4)):
            await store.put(summary("same", text))
            await store.put_record("same", record(number))
            await store.put(summary(f"a summary {number}"))
        assert await store.get(["same"]) == {"same": summary("same", "another text")}
        assert await store.get_records(["same", "a summary 3"]) == {"same": record(4)}

    @pytest.mark.parametrize(
        "text",
        ["é\u2028\n'\";--\x00😀", "alone: \ud83d and \udc00", "%s {0} \\u0041", "x" * 300_000],
        ids=["signs", "surrogates", "placeholders", "long"],
    )
    async def test_a_text_of_any_kind_survives(self, store, text):
        """In notes as well."""
        await store.put(summary("a", text))
        await store.put_record("d", made := {**record(), "notes": [text, 1, 0]})
        assert (await store.get(["a"]))["a"].text == text
        assert await store.get_records(["d"]) == {"d": made}

    async def test_a_fallback_summary_is_refused_and_what_is_there_stays(self, store):
        await store.put(summary("a"))
        for key in ("a", "b"):
            with pytest.raises(ValueError, match="a fallback summary is never stored"):
                await store.put(summary(key, "by code", fallback=True))
        assert await store.get(["a", "b"]) == {"a": summary("a")}

    async def test_thousands_of_keys_are_asked_for_at_once(self, store):
        """More than a database takes as variables of one query."""
        asked = keys(40_000)
        for index in (0, 9_000, -1):
            await store.put(summary(asked[index]))
            await store.put_record(asked[index], record())
        assert len(await store.get(asked)) == len(await store.get_records(asked)) == 3

    async def test_closing_waits_for_calls_under_way_and_a_closed_store_may_be_used_again(self, store):
        """Also one that was never used; closing twice is no error."""
        await store.close()
        names = keys(20)
        puts = [asyncio.create_task(store.put(summary(key))) for key in names]
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        await asyncio.gather(*puts)
        await store.put_record("d", record())
        assert (await store.get(names)).keys() == set(names)
        assert await store.get_records(["d"]) == {"d": record()}

    async def test_a_caller_that_is_cancelled_leaves_whole_entries(self, store):
        """Its put is done or undone, and the store serves the next caller."""
        made = {key: summary(key, "text of " + key) for key in keys(40)}
        tasks = [asyncio.create_task(store.put(each)) for each in made.values()]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        found = await store.get([*made])
        assert found.keys() >= {*[*made][1::2]}
        assert found.items() <= made.items()
        await store.put(summary("next"))
        assert (await store.get(["next"])).keys() == {"next"}
