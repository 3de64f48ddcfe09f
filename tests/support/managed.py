"""A manager for tests, with the provider, the host and the store that it works with, and its next process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.gated import answer
from tests.support.kept import KeptStore
from tests.support.recorder import Recorder
from tests.support.rows import feed
from tests.support.views import untimed


def answering() -> ScriptedProvider:
    return ScriptedProvider(then=answer)


class Managed:
    """A session whose requests have this budget.

    Args:
        provider: makes the one that requests pass, for each process anew.
        settings: those of the manager, its clock among them.
    """

    def __init__(
        self,
        budget: int | None = None,
        *,
        provider: Callable[[], ScriptedProvider] = answering,
        host: Any = None,
        store: Any = None,
        **settings: Any,
    ) -> None:
        self.budget, self.settings, self._new_provider = budget, settings, provider
        self.provider: Any = provider()
        self.host: Any = host or Recorder()
        self.store: Any = store or (None if "cache" in settings else KeptStore())
        self.manager = SummarizingContextManager(self.host, store=self.store, **settings)

    async def add(self, rows: Iterable[JsonRow]) -> Managed:
        """The rows come one by one."""
        await feed(self.manager, rows)
        return self

    async def take(self, rows: Iterable[JsonRow]) -> Managed:
        """The rows are the whole history."""
        await self.manager.set_messages(rows)
        return self

    async def view(self, budget: int | None = None) -> list[JsonRow]:
        return await self.manager.get_messages_for_request(budget or self.budget, self.provider)

    async def compacted(self) -> list[JsonRow]:
        """The view after `compact()`."""
        await self.manager.compact()
        return await self.view()

    async def rows(self) -> list[JsonRow]:
        return untimed(await self.manager.get_messages())

    async def again(self, rows: Iterable[JsonRow] | None = None, host: Any = None) -> Managed:
        """The session in its next process, with its rows or these."""
        given = await self.rows() if rows is None else rows
        await self.manager.close()
        parts = {"provider": self._new_provider, "host": host or self.host, "store": self.store}
        return await Managed(self.budget, **parts, **self.settings).take(given)
