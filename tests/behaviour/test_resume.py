"""A session goes on in a new process, in a fork and after a repair, from its newest compaction and unasked."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from context_summarize.testing import JsonRow, MemoryStore, broken_pairs
from tests.support.effort import LONG
from tests.support.gated import questions
from tests.support.kept import KeptStore
from tests.support.managed import Managed
from tests.support.paths import ROOT
from tests.support.recorder import EXAMPLE, Recorder
from tests.support.rows import tool_session
from tests.support.saved import saved
from tests.support.views import nodes, size

DATA = ROOT / "tests" / "data"
AIRLINE, OTHER, CODING = EXAMPLE, DATA / "airline-desk-1.jsonl", DATA / "marshmallow-fix.jsonl"
BUDGETS = {AIRLINE: 8_000, OTHER: 8_000, CODING: 5_000}
POINTS = [(AIRLINE, 477), (OTHER, 181), (CODING, 28)]
if LONG:
    POINTS += [(AIRLINE, 131), (AIRLINE, 823), (AIRLINE, 1_335), (OTHER, 520), (OTHER, 1_225), (CODING, 19)]
"""Recording and row at which a session ends: turns that have just begun, open calls, and the last row."""
RARE: dict[str, Any] = {"compact_threshold": 0.7, "summary_share": 0.25}
"""Sessions end below this threshold: above it a compaction is due, which a new process makes at its first request."""
_LINE = re.compile(r"\(line (\d+)\)")


def recorded(path: Path) -> list[JsonRow]:
    """The rows of a recording."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def lived(rows: Sequence[JsonRow], first: int = 0) -> list[JsonRow]:
    """The rows as a session holds them: with what hosts drop when they save, and user rows numbered from `first`."""
    out: list[JsonRow] = []
    for at, given in enumerate(rows, first):
        row: JsonRow = {**given, "name": given.get("name"), "metadata": {"turn": at, "note": None}}
        if row["role"] == "user":
            row["content"] = f"{row['content']} (line {at})"
        out.append(thoughtful(row, at) if row["role"] == "assistant" else row)
        if at % 9 == 4:
            out.append({"role": "user", "content": f"Reminder {at}.", "metadata": {"source": "hook"}})
        if at % 50 == 7 and row["role"] == "user":
            out.append({"role": "developer", "content": f"Mode {at}."})
    return out


def thoughtful(row: JsonRow, at: int) -> JsonRow:
    """An assistant row with its private reasoning, in each of the places where loops put it."""
    content = row["content"]
    thinking = {"type": "thinking", "thinking": f"thought {at}", "signature": "c2ln", "visibility": None}
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if row.get("tool_calls") and at % 3 == 0:
        return {**row, "content": None, "thinking_block": thinking}
    return {**row, "content": [thinking, *blocks], "content_blocks": [thinking]}


def as_saved(rows: Iterable[JsonRow]) -> list[JsonRow]:
    """What a host keeps of rows that drops those of hooks and private reasoning too."""
    kept = [row for row in saved(rows) if (row.get("metadata") or {}).get("source") != "hook"]
    for row in kept:
        if isinstance(row.get("content"), list):
            row["content"] = [block for block in row["content"] if block["type"] != "thinking"]
    return kept


def lines(texts: Iterable[str]) -> set[int]:
    """Numbers of the user rows that stand in these texts."""
    return {int(number) for text in texts for number in _LINE.findall(text)}


class Ended(Managed):
    """A session that has ended."""

    async def live(self, rows: Sequence[JsonRow]) -> Ended:
        """Run it as a loop does, one view before every assistant row and one at the end, and close it."""
        for row in rows:
            if row["role"] == "assistant":
                await self.view()
            await self.add([row])
        self.lived, self.last = list(rows), await self.view()
        await self.manager.settle()  # what was begun for the next compaction is there
        await self.manager.close()
        return self


async def live(rows: Sequence[JsonRow], budget: int = 8_000, **settings: Any) -> Ended:
    return await Ended(budget, **RARE, **settings).live(rows)


async def resume(
    rows: Sequence[JsonRow], budget: int = 8_000, *, replayed: bool = False, **settings: Any
) -> tuple[list[JsonRow], int]:
    """(first view, provider calls) of a new manager that is given these rows."""
    made = Managed(budget, **RARE, **settings)
    await (made.add(rows) if replayed else made.take(rows))
    view = await made.view()
    await made.manager.close()
    return view, made.provider.calls


@pytest.mark.parametrize(("path", "at"), POINTS, ids=[f"{path.stem}-{at}" for path, at in POINTS])
async def test_a_session_goes_on_in_a_new_process_unasked(path, at, tmp_path):
    budget = BUDGETS[path]
    ended = await live(lived(recorded(path)[:at]), budget, cache=str(tmp_path / "old"))
    assert as_saved(ended.last) != as_saved(ended.lived), "a compaction was made"
    assert ended.lived != as_saved(ended.lived)
    for replayed in (False, True):
        file = tmp_path / f"new-{replayed}"  # so that neither finds what the other left
        shutil.copy(tmp_path / "old", file)
        view, calls = await resume(as_saved(ended.lived), budget, cache=str(file), replayed=replayed)
        assert calls == 0
        assert nodes(view) == nodes(ended.last)
        assert as_saved(view) == as_saved(ended.last)


@pytest.fixture(scope="module")
def ended() -> Ended:
    """A session that has ended."""
    return asyncio.run(live(lived(recorded(AIRLINE)[:420])))


@pytest.fixture
def store(ended: Ended) -> Any:
    """What it has left, for one test."""
    return deepcopy(ended.store)


async def test_a_fork_pays_for_its_own_tail_only():
    """Two sessions with one beginning: nothing is asked twice, and the second shows nobody what the first paid for."""
    store = MemoryStore()
    prefix = lived(recorded(AIRLINE)[:300])
    first = await live([*prefix, *lived(recorded(OTHER)[1:200], 10_000)], store=store)
    tail = lived(recorded(AIRLINE)[300:420], 20_000)
    second = await live([*as_saved(prefix), *tail], store=store)
    paid, own = questions(first.provider), questions(second.provider)
    assert len(set(paid)) == len(paid) > 0
    assert len(set(own)) == len(own) > 0
    assert not set(own) & set(paid)
    assert len([text for text in own if lines([text]) & lines(paid)]) <= 1, "what lies across the fork"
    assert max(lines(own)) >= 20_000


async def test_a_repair_in_the_middle_pays_for_what_it_changes(store, ended):
    """The cuts fall as before after a segment or two, so that hardly any other segment is read again."""
    rows = ended.lived
    users = [at for at, row in enumerate(rows) if row["role"] == "user" and "(line " in row["content"]]
    row = users[len(users) // 2]
    repaired = [*rows[:row], {**rows[row], "content": f"{rows[row]['content']} Repaired."}, *rows[row + 1 :]]
    made = await Managed(8_000, store=store, auto_compact=False).take(rows)
    await made.view()
    assert made.provider.calls == 0
    await (await made.take(repaired)).view()
    await made.manager.compact()
    await made.manager.close()
    paid, before = questions(made.provider), questions(ended.provider)
    assert len(set(paid)) == len(paid)
    assert not set(paid) & set(before)
    assert any("Repaired." in text for text in paid)
    assert len([text for text in paid if lines([text]) & lines(before)]) <= 3, "its part, and those beside it"


@pytest.mark.parametrize("form", [[1], "text", 5, {"view": [1]}, {"pins": 1, "undone": 2, "undone_at": "x"}])
async def test_a_record_of_another_form_is_ignored(store, ended, form):
    class Odd(KeptStore):
        async def get_records(self, hashes: Sequence[str]) -> dict[str, Any]:
            return dict.fromkeys(await store.get_records(hashes), form)

    view, _ = await resume(as_saved(ended.lived), store=Odd())
    assert nodes(view)


async def test_the_first_request_of_a_resumed_session_is_its_last_one_whatever_the_provider_counts():
    """Its figures are not known yet; a compaction comes at the next request, if it is due."""
    made = Managed(8_000, keep_recent=4, segment_tokens=512)
    for turn in range(60):
        await made.add(tool_session(1, start=turn))
        view = await made.view()
        await made.manager.observe_usage({"input_tokens": size(view) * 2 // 3})
    assert nodes(view)
    again = await made.again()
    assert await again.view() == view
    assert size(await (await again.add(tool_session(1, start=60))).view()) < size(view)
    tight = await made.again()
    assert size(await tight.view(2_000)) <= 2_000, "but it fits"


async def test_a_saved_cut_that_ends_within_a_part_is_none():
    """The session is served all the same, from an earlier cut or from none."""
    settings: dict[str, Any] = {"segment_tokens": 64, "keep_recent": 4, "prefetch": False}
    first = await Managed(900, host=Recorder(session_id="one"), **settings).take(tool_session(20))
    await first.view()
    for record in first.store.records.values():
        for cut in [cut for _, cut in record["cuts"]] if "cuts" in record else [record]:
            cut["groups"] = 3
    again = await first.again()
    view = await again.view()
    assert size(view) <= 900
    assert broken_pairs(view) == []
    assert first.host.compactions == 2, "one more than before"
    await again.manager.close()
