"""A session goes on in a new process, in a fork and after a repair, from its newest compaction and unasked."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.testing import JsonRow, MemoryStore, ScriptedProvider
from tests.support.effort import LONG
from tests.support.gated import answer, questions
from tests.support.kept import KeptStore
from tests.support.paths import ROOT
from tests.support.recorder import EXAMPLE
from tests.support.rows import feed
from tests.support.saved import saved
from tests.support.views import nodes

DATA = ROOT / "tests" / "data"
AIRLINE, OTHER, CODING = EXAMPLE, DATA / "airline-desk-1.jsonl", DATA / "marshmallow-fix.jsonl"
BUDGETS = {AIRLINE: 8_000, OTHER: 8_000, CODING: 5_000}
POINTS = [(AIRLINE, 477), (OTHER, 168), (CODING, 28)]
if LONG:
    POINTS += [(AIRLINE, 131), (AIRLINE, 823), (AIRLINE, 1_335), (OTHER, 520), (OTHER, 1_225), (CODING, 19)]
"""Recording and row at which a session ends: turns that have just begun, open calls, and the last row."""
RARE: dict[str, Any] = {"compact_threshold": 0.7, "summary_share": 0.25}
"""Sessions end below this threshold: above it a compaction is due, which a new process makes at its first request."""
FRESH = "fresh-"
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
    thinking = {"type": "thinking", "thinking": f"{FRESH}thought {at}", "signature": "c2ln", "visibility": None}
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


def keys(view: Iterable[JsonRow]) -> list[str]:
    return [row["metadata"]["key"] for row in nodes(list(view))]


def lines(texts: Iterable[str]) -> set[int]:
    """Numbers of the user rows that stand in these texts."""
    return {int(number) for text in texts for number in _LINE.findall(text)}


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that has ended."""

    rows: list[JsonRow]
    view: list[JsonRow]
    provider: ScriptedProvider


async def live(rows: Sequence[JsonRow], budget: int, **settings: Any) -> Ended:
    """Run a session as a loop does, one view before every assistant row and one at the end, and close it."""
    provider = ScriptedProvider(then=answer)
    manager = SummarizingContextManager(**{**RARE, **settings})
    for row in rows:
        if row["role"] == "assistant":
            await manager.get_messages_for_request(budget, provider)
        await manager.add_message(row)
    view = await manager.get_messages_for_request(budget, provider)
    await manager.settle()  # what was begun for the next compaction is there
    await manager.close()
    return Ended(list(rows), view, provider)


async def resume(
    rows: Sequence[JsonRow], budget: int, *, replayed: bool = False, **settings: Any
) -> tuple[list[JsonRow], ScriptedProvider]:
    """(first view, provider) of a new manager that is given these rows."""
    provider = ScriptedProvider(then=answer)
    manager = SummarizingContextManager(**{**RARE, **settings})
    if replayed:
        await feed(manager, rows)
    else:
        await manager.set_messages(rows)
    view = await manager.get_messages_for_request(budget, provider)
    await manager.close()
    return view, provider


# --- the same session -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "at"), POINTS, ids=[f"{path.stem}-{at}" for path, at in POINTS])
async def test_a_session_goes_on_in_a_new_process_unasked(path: Path, at: int, tmp_path: Path) -> None:
    """Handed over whole or row by row: no provider call, the same summaries, the same rows beside them."""
    budget = BUDGETS[path]
    ended = await live(lived(recorded(path)[:at]), budget, cache=str(tmp_path / "old"))
    assert as_saved(ended.view) != as_saved(ended.rows), "a compaction was made"
    assert ended.rows != as_saved(ended.rows)
    for replayed in (False, True):
        file = tmp_path / f"new-{replayed}"  # so that neither finds what the other left
        shutil.copy(tmp_path / "old", file)
        view, provider = await resume(as_saved(ended.rows), budget, cache=str(file), replayed=replayed)
        assert provider.calls == 0
        assert nodes(view) == nodes(ended.view)
        assert as_saved(view) == as_saved(ended.view)


SECOND_PROCESS = """
import asyncio, json, os, sys

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider


async def main():
    rows = json.load(sys.stdin)
    provider = ScriptedProvider(then=RuntimeError("asked"))
    manager = SummarizingContextManager(cache=sys.argv[1], compact_threshold=0.7)
    await manager.set_messages(rows)
    view = await manager.get_messages_for_request(8_000, provider)
    await manager.close()
    print(json.dumps({"view": view, "calls": provider.calls}), flush=True)
    os._exit(0)  # the kernel's own threads can crash an interpreter that ends


asyncio.run(main())
"""


async def test_a_second_python_process_goes_on_where_the_first_one_stopped(tmp_path: Path) -> None:
    """Nothing but the file and the saved rows passes between them."""
    path = str(tmp_path / "store")
    ended = await live(lived(recorded(AIRLINE)[:302]), 8_000, cache=path)
    given = json.dumps(as_saved(ended.rows))
    command = [sys.executable, "-c", SECOND_PROCESS, path]
    done = await asyncio.to_thread(
        subprocess.run, command, input=given, capture_output=True, text=True, check=True, cwd=DATA.parent.parent
    )
    told = json.loads(done.stdout)
    assert told["calls"] == 0
    assert nodes(told["view"]) == nodes(ended.view) != []
    assert as_saved(told["view"]) == as_saved(ended.view)


@pytest.fixture(scope="module")
def left() -> tuple[KeptStore, Ended]:
    """A session that has ended, and the store that it left."""
    store = KeptStore()
    return store, asyncio.run(live(lived(recorded(AIRLINE)[:420]), 8_000, store=store))


@pytest.fixture
async def kept(left: tuple[KeptStore, Ended]) -> tuple[KeptStore, Ended]:
    """The same, for one test."""
    store = KeptStore()
    await store.take(summaries=left[0].summaries, records=left[0].records)
    return store, left[1]


# --- forks and repairs ----------------------------------------------------------------------------------------------


async def test_a_fork_pays_for_its_own_tail_only() -> None:
    """Two sessions with one beginning: nothing is asked twice, and the second shows nobody what the first paid for."""
    store = MemoryStore()
    prefix = lived(recorded(AIRLINE)[:300])
    first = await live([*prefix, *lived(recorded(OTHER)[1:200], 10_000)], 8_000, store=store)
    tail = lived(recorded(AIRLINE)[300:420], 20_000)
    second = await live([*as_saved(prefix), *tail], 8_000, store=store)
    paid, own = questions(first.provider), questions(second.provider)
    assert len(set(paid)) == len(paid) > 0
    assert len(set(own)) == len(own) > 0
    assert not set(own) & set(paid)
    assert len([text for text in own if lines([text]) & lines(paid)]) <= 1, "what lies across the fork"
    assert max(lines(own)) >= 20_000


async def test_a_repair_in_the_middle_pays_for_what_it_changes(kept: tuple[MemoryStore, Ended]) -> None:
    """`set_messages` with one row changed: nobody is asked for a text that is there.

    The cuts fall as before after a segment or two, so that hardly any other segment is read again.
    """
    store, before = kept
    rows = before.rows
    users = [at for at, row in enumerate(rows) if row["role"] == "user" and "(line " in row["content"]]
    row = users[len(users) // 2]
    repaired = [*rows[:row], {**rows[row], "content": f"{rows[row]['content']} Repaired."}, *rows[row + 1 :]]
    provider = ScriptedProvider(then=answer)
    manager = SummarizingContextManager(store=store, auto_compact=False)
    await manager.set_messages(rows)
    await manager.get_messages_for_request(8_000, provider)
    assert provider.calls == 0
    await manager.set_messages(repaired)
    await manager.get_messages_for_request(8_000, provider)
    await manager.compact()
    await manager.close()
    paid = questions(provider)
    assert len(set(paid)) == len(paid)
    assert not set(paid) & set(questions(before.provider))
    assert any("Repaired." in text for text in paid)
    assert len([text for text in paid if lines([text]) & lines(questions(before.provider))]) <= 2


# --- what is not adopted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", ["segment.md", "merge.md", "segment_tokens"])
async def test_a_record_made_by_other_prompts_or_sizes_is_not_adopted(
    changed: str, kept: tuple[MemoryStore, Ended], tmp_path: Path
) -> None:
    """Its summaries are not those that these prompts and sizes would make."""
    store, ended = kept
    if changed.endswith(".md"):
        prompts = shutil.copytree(ROOT / "prompts" / "default", tmp_path / "prompts")
        with (prompts / changed).open("a") as file:
            file.write("\nBe brief.\n")
        settings: dict[str, Any] = {"prompts": str(prompts)}
    else:
        settings = {changed: 2_048}
    view, provider = await resume(as_saved(ended.rows), 8_000, store=store, **settings)
    if changed == "merge.md":
        # Summaries of segments do not depend on it; merges do.
        assert not {row["metadata"]["key"] for row in nodes(view) if row["metadata"]["level"]} & set(keys(ended.view))
    else:
        assert provider.calls > 0
        assert not set(keys(view)) & set(keys(ended.view))


async def test_a_record_that_does_not_match_its_history_is_ignored(kept: tuple[KeptStore, Ended]) -> None:
    """One of another length: the view is made anew, from the summaries that are there."""
    store, ended = kept
    records = list(store.records.items())
    assert len(records) > 2
    for (hash_, _), (_, other) in zip(records, [*records[1:], records[0]], strict=True):
        await store.put_record(hash_, other)
    view, _ = await resume(as_saved(ended.rows), 8_000, store=store)
    ranges = [row["metadata"]["messages"] for row in nodes(view)]
    assert ranges
    assert [first for first, _ in ranges] == [1, *(last + 1 for _, last in ranges[:-1])]
    assert "fallback" not in "".join(row["content"] for row in nodes(view)).lower()


def deep(record: JsonRow) -> JsonRow:
    """The record with a tree of hundreds of levels, as no session makes one."""
    for _ in range(960):
        record = {**record, "nodes": [["key", 1, 0, record.get("frontier"), 64, 512, record.get("nodes", []), None]]}
    return record


@pytest.mark.parametrize("form", [[1], "text", 5, {"view": [1]}, {"pins": 1, "undone": 2, "undone_at": "x"}, deep])
async def test_a_record_of_another_form_is_ignored(kept: tuple[KeptStore, Ended], form: Any) -> None:
    """Whatever a store gives: the view is made anew, and no request fails."""
    store, ended = kept

    class Odd(KeptStore):
        async def get_records(self, hashes: Sequence[str]) -> dict[str, Any]:
            found = await store.get_records(hashes)
            return {hash_: form(found[hash_]) if callable(form) else form for hash_ in found}

    view, _ = await resume(as_saved(ended.rows), 8_000, store=Odd())
    assert nodes(view)
