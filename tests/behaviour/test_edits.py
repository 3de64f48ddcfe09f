"""A host edits rows in mid-history: only the summaries that hold them, and the merges above, are made anew."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.core.nodes import leaves_of
from context_summarize.messages.reading import broken_pairs
from context_summarize.messages.rows import JsonRow
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider, tool_session
from tests.support.gated import Gated, answer
from tests.support.recorder import Recorder
from tests.support.views import nodes

SETTINGS: dict[str, Any] = {
    "segment_tokens": 512, "keep_recent": 4, "prefetch": False,
    "compact_threshold": 0.7,
}  # fmt: skip
BUDGET = 8_000


class Host(Recorder):
    """A coordinator with a session id, as records are kept by it."""

    session_id = "edited"


@dataclass
class Session:
    """A manager whose history has been compacted."""

    store: MemoryStore = field(default_factory=MemoryStore)
    provider: ScriptedProvider = field(default_factory=lambda: ScriptedProvider(then=answer, context_window=200_000))
    host: Host = field(default_factory=Host)
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[JsonRow] = field(default_factory=list)
    manager: SummarizingContextManager = field(init=False)

    def __post_init__(self) -> None:
        self.manager = self.begun()

    def begun(self) -> SummarizingContextManager:
        return SummarizingContextManager(self.host, store=self.store, **{**SETTINGS, **self.settings})

    async def live(self, turns: int = 24, compactions: int = 1) -> Session:
        for row in tool_session(turns, size=600):
            await self.manager.add_message(row)
        await self.view()
        while self.host.compactions < compactions:
            turn = len(await self.manager.get_messages()) // 4
            for row in tool_session(1, size=600, start=turn):
                await self.manager.add_message(row)
            await self.view()
        self.rows = await self.manager.get_messages()
        return self

    async def view(self) -> list[JsonRow]:
        return await self.manager.get_messages_for_request(BUDGET, self.provider)

    async def restart(self, rows: list[JsonRow]) -> None:
        await self.manager.close()
        self.manager = self.begun()
        await self.manager.set_messages(rows)

    @property
    def keys(self) -> list[str]:
        """Keys of the segments that are summarised, in order, those below merges too."""
        return [leaf.key for leaf in leaves_of(self.manager.conversation.view.nodes)]


def replaced(rows: list[JsonRow], at: int, text: str) -> list[JsonRow]:
    """The rows with another receipt in the place of one result."""
    out = copy.deepcopy(rows)
    assert out[at]["role"] == "tool"
    out[at]["content"] = text
    return out


def row_of(session: Session, segment: int) -> int:
    """A tool result in this summarised segment."""
    history = session.manager.conversation.history
    leaf = list(leaves_of(session.manager.conversation.view.nodes))[segment]
    group = next(
        found
        for at in range(leaf.first_group, leaf.end_group)
        if (found := history.rendered_group(at)).end - found.start > 1
    )
    return group.start + 1


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_edit_pays_for_the_segment_that_it_changes(restarted: bool) -> None:
    """The view is that of the last compaction before it; the next one finds all the other summaries in the store."""
    session = await Session(settings={"auto_compact": False}).live()
    keys, calls = session.keys, session.provider.calls
    assert len(keys) >= 6
    rows = replaced(session.rows, row_of(session, 3), "Receipt 3 is kept elsewhere. " * 20)
    await (session.restart(rows) if restarted else session.manager.set_messages(rows))
    assert broken_pairs(await session.view()) == []
    assert not any(item.summary.fallback for item in session.manager.conversation.view.shown)
    await session.manager.compact()
    assert session.keys[:3] + session.keys[4 : len(keys)] == keys[:3] + keys[4:]
    assert session.keys[3] != keys[3]
    assert 1 <= session.provider.calls - calls <= 2, "the segment, and perhaps the run after the last one"


async def test_a_history_that_is_cut_back_or_another_one_takes_nothing_over() -> None:
    """Rows that are gone leave no fallback behind."""
    session = await Session().live()
    calls = session.provider.calls
    await session.manager.set_messages(session.rows[: row_of(session, 2)])
    await session.view()
    assert not any(item.summary.fallback for item in session.manager.conversation.view.shown)
    await session.manager.set_messages(tool_session(3, size=600, start=7_000))
    assert nodes(await session.view()) == []
    assert session.provider.calls == calls


async def test_an_edit_waits_for_no_provider_that_hangs() -> None:
    """What is still asked for shows its fallback; a request and a status line come at once."""
    provider = Gated()
    session = Session(provider=provider, settings={"wait_seconds": 0.01})
    for row in tool_session(60, size=600):
        await session.manager.add_message(row)
    shown = nodes(await session.view())
    assert shown
    assert provider.asked.is_set()
    rows = await session.manager.get_messages()
    await session.manager.set_messages([*rows[:-1], {"role": "assistant", "content": "put in by the host"}])
    async with asyncio.timeout(30):
        await session.manager.get_token_count()
        assert await session.manager.unpin() == ()
        assert nodes(await session.view()) == shown
