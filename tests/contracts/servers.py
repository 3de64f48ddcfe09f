"""The contract of a store on a server, which cannot say that it is empty."""

from __future__ import annotations

from context_summarize.stores import SummaryStore
from tests.contracts import test_stores as contract
from tests.contracts.factories import record


class SummariesOnAServer(contract.TestSummaries):
    async def test_a_new_store_holds_nothing(self, store: SummaryStore) -> None:
        """But nobody can know that, so it never says that it is empty."""
        assert await store.get(["a"]) == {}
        assert await store.find_records(["d"]) == []
        assert not await store.is_empty()


class RecordsOnAServer(contract.TestRecords):
    async def test_a_store_is_empty_until_a_compaction_is_recorded(self, store: SummaryStore) -> None:
        """It never says so: others may have put one."""
        assert not await store.is_empty()
        await store.put_record(record("d"))
        assert not await store.is_empty()
