"""A host edits rows in mid-history: only the summaries that hold them, and the merges above, are made anew."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.core.nodes import leaves_of
from context_summarize.messages.pairs import broken_pairs
from context_summarize.messages.rows import JsonRow
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider, assistant, tool_session, user
from tests.support.gated import Gated, answer
from tests.support.recorder import Recorder
from tests.support.views import nodes

SETTINGS: dict[str, Any] = {
    "segment_tokens": 512, "keep_recent": 4, "prefetch_threshold": None,
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
        while self.host.boundaries < compactions:
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
@pytest.mark.parametrize("text", ["[receipt kept elsewhere]", "a far longer receipt " * 60])
async def test_a_receipt_replaced_in_place_keeps_every_other_summary(restarted: bool, text: str) -> None:
    """Before and after the edit, also in a new process; the edited segment is a fallback, and nobody is asked."""
    session = await Session().live()
    keys, calls, shown = session.keys, session.provider.calls, nodes(await session.view())
    assert len(keys) >= 6
    rows = replaced(session.rows, row_of(session, 3), text)
    await (session.restart(rows) if restarted else session.manager.set_messages(rows))
    view = await session.view()
    assert session.provider.calls == calls
    assert session.keys[:3] + session.keys[4:] == keys[:3] + keys[4:]
    assert session.keys[3] != keys[3]
    found = nodes(view)
    assert found[:3] + found[4:] == shown[:3] + shown[4:]
    assert [item.summary.fallback for item in session.manager.conversation.view.shown].index(True) == 3
    assert broken_pairs(view) == []
    await session.manager.compact()
    assert session.keys[: len(keys)] == [*keys[:3], session.keys[3], *keys[4:]]
    assert not any(item.summary.fallback for item in session.manager.conversation.view.shown)
    asked_below = [node for node in session.keys if node not in keys]
    assert session.provider.calls - calls == len(asked_below)
    await session.manager.close()


@pytest.mark.parametrize("restarted", [False, True])
async def test_below_a_merge_the_segment_and_the_merges_above_it_are_made_anew(restarted: bool) -> None:
    """Their neighbours in the merge are found in the store."""
    session = await Session(settings={"summary_share": 0.05}).live(40, compactions=2)
    tops = session.manager.conversation.view.shown
    assert tops[0].node.children
    keys, calls = session.keys, session.provider.calls
    rows = replaced(session.rows, row_of(session, 1), "[receipt kept elsewhere]")
    await (session.restart(rows) if restarted else session.manager.set_messages(rows))
    await session.view()
    assert session.provider.calls == calls
    now = session.manager.conversation.view.shown
    assert [item.summary.fallback for item in now] == [True, *([False] * (len(now) - 1))]
    assert [item.node.key for item in now[1:]] == [item.node.key for item in tops[1:]]
    assert session.keys[:1] + session.keys[2:] == keys[:1] + keys[2:]
    await session.manager.compact()
    made = session.host.of("context-summarize:summary")[calls:]
    levels = [data["level"] for data in made if data["key"] not in keys]
    depth = tops[0].node.level
    assert levels.count(0) <= 1 + len(session.keys) - len(keys)
    assert {*range(depth + 1)} <= set(levels)
    await session.manager.close()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("where", [0, 3, -1])
async def test_rows_put_in_or_taken_out_move_what_follows(restarted: bool, where: int) -> None:
    """The summaries after them stand for the same rows under other numbers."""
    session = await Session().live()
    keys, calls = session.keys, session.provider.calls
    at = row_of(session, where) + 2
    for rows in (
        [*session.rows[:at], user("One more thing."), assistant("Noted."), *session.rows[at:]],
        [*session.rows[:at], *session.rows[at + 4 :]],
    ):
        await (session.restart(rows) if restarted else session.manager.set_messages(rows))
        view = await session.view()
        assert session.provider.calls == calls
        changed = [at for at, (new, old) in enumerate(zip(session.keys, keys, strict=True)) if new != old]
        assert changed == [where % len(keys)]
        ranges = [row["metadata"]["messages"] for row in nodes(view)]
        assert [first for first, _ in ranges] == [1, *(last + 1 for _, last in ranges[:-1])]
        assert ranges[-1][1] <= len(rows)
        assert broken_pairs(view) == []
        await session.restart(session.rows)
        await session.view()
        assert session.keys == keys
        assert session.provider.calls == calls
    await session.manager.close()


async def test_segments_that_are_not_summarised_yet_keep_their_cuts_over_an_edit() -> None:
    """What is prefetched for them is not paid for again; a later compaction and a resume have the same cuts."""
    session = await Session().live()
    for row in tool_session(12, size=600, start=900):
        await session.manager.add_message(row)
    await session.manager.preview()
    chat = session.manager.conversation
    ahead = [leaf.key for leaf in chat.builder.ahead(chat.view.frontier)]
    assert len(ahead) >= 4
    rows = await session.manager.get_messages()
    first = chat.builder.ahead(chat.view.frontier)[1]
    group = next(g for g in map(chat.history.rendered_group, range(first.first_group, first.end_group)) if not g.user)
    at = next(at for at in range(group.start, len(rows)) if rows[at]["role"] == "tool")
    edited = replaced(rows, at, "[gone]")
    await session.manager.set_messages(edited)
    await session.manager.preview()
    chat = session.manager.conversation
    now = [leaf.key for leaf in chat.builder.ahead(chat.view.frontier)]
    assert now[0] == ahead[0]
    assert now[2 : len(ahead)] == ahead[2:]
    assert now[1] != ahead[1]
    await session.restart(edited)
    await session.manager.preview()
    chat = session.manager.conversation
    assert [leaf.key for leaf in chat.builder.ahead(chat.view.frontier)][: len(now)] == now
    await session.manager.close()


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
    await session.manager.close()


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
    await session.manager.close()
