"""The contract of a store on a server, which cannot say that it is empty."""

from __future__ import annotations

from context_summarize.stores.protocol import SummaryStore
from tests.contracts import test_stores as contract
from tests.contracts.factories import keys, record


class SummariesOnAServer(contract.TestSummaries):
    async def test_a_new_store_holds_nothing(self, store: SummaryStore) -> None:
        """But nobody can know that, so it never says that it is empty."""
        assert await store.get(["a"]) == {}
        assert await store.find_records(["d"]) == []
        assert not await store.is_empty()


class RecordsOnAServer(contract.TestRecords):
    async def test_records_are_found_among_those_of_a_long_history(self, store: SummaryStore) -> None:
        """The longest one, and what else the same request to the server finds."""
        hashes = keys(10_000)
        for index in (9_200, 9_100, 4_000):
            await store.put_record(record(hashes[index], index))
        found = await store.find_records(hashes[::-1])
        assert [each.frontier_group for each in found] == [9_200, 9_100]

    async def test_a_store_is_empty_until_a_compaction_is_recorded(self, store: SummaryStore) -> None:
        """It never says so: others may have put one."""
        assert not await store.is_empty()
        await store.put_record(record("d"))
        assert not await store.is_empty()
