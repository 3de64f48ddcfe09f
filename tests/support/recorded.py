"""Plays sessions and keeps a digest of each request, event and summary, so that a change of any of them is named."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from amplifier_core.message_models import ChatRequest

from benchmarks.sessions import recorded
from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.events import FAILURE, REQUEST, RESOLVE, SUMMARY
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.gated import question
from tests.support.paths import ROOT
from tests.support.recorder import Recorder
from tests.support.rows import user
from tests.support.views import untimed
from tests.support.virtual import run_virtually

FILE = ROOT / "tests" / "data" / "recorded.json"
KINDS = ("request", "event", "summary")
"""Requests; events of compactions, and what methods return; events of summaries, and what is asked for them."""
_OF_SUMMARIES = ("call", RESOLVE, REQUEST, SUMMARY, FAILURE)
"""Calls run side by side, so that their order between two requests says nothing."""
_TIMES = re.compile(r"_ms$|_s$|seconds|duration|timestamp")
_RULE = re.compile(r"(?i)\b(?:never|always|from now on|do not|must)\b")
_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=repr).encode
Digests = Mapping[str, str]
"""Kind → a digest for each, joined by blanks."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """What is played: a request comes before every assistant row, and one at the end."""

    rows: list[JsonRow]
    window: int
    settings: dict[str, Any] = field(default_factory=dict)
    steps: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    """Before the row of this number: a method of the manager, and its arguments."""
    restarts_at: int | None = None
    """Before this row the session ends, and goes on with a new manager over the same store."""
    pause: float | None = None
    """Virtual seconds between requests, with a summariser that is slow and now and then refuses; None = until idle."""
    short: int | None = None
    """Requests of a shorter play, which has a compaction as well; None = all."""
    tells_usage: bool = False
    """The provider says how large each request was."""


def scripts() -> dict[str, Script]:
    """All sessions by name; nothing in them depends on the machine."""
    desk = recorded()
    prompt, *agent = recorded(path=ROOT / "tests" / "data" / "marshmallow-fix.jsonl")
    turn = [prompt, user("Never change a name."), *(row for row in agent * 12 if row["role"] != "user")]
    steered: dict[int, tuple[Any, ...]] = {90: ("pin", [2, 5]), 400: ("preview",), 401: ("compact", "failing tests")}
    steered |= {402: ("undo",), 500: ("unpin",)}
    return {
        "desk-8k": Script(rows=desk, window=8_000, short=200),
        "desk-40k": Script(rows=desk, window=40_000, short=250),
        "desk-200k": Script(rows=recorded(2)[:1_800], window=200_000, short=500),
        "coding": Script(
            rows=[prompt, *_coding(agent)],
            window=20_000,
            settings={"prompts": "coding"},
            steps=steered,
            tells_usage=True,
            short=300,
        ),
        "long-turn": Script(rows=turn, window=20_000, pause=4.0, short=90),
        "resumed": Script(rows=desk[:700], window=12_000, restarts_at=401, pause=4.0),
    }


def _coding(agent: list[JsonRow]) -> Iterator[JsonRow]:
    """Many short conversations with corrections, and between them an agent that edits and tests at length."""
    talks = (ROOT / "tests" / "corpora" / "note_conversations.jsonl").read_text("utf-8").splitlines()
    for number, talk in enumerate(talks[:72]):
        yield from agent if number % 6 == 0 else ()
        yield from json.loads(talk)["messages"]


class Tape:
    """Digests of what a session shows, and what each one is of.

    Args:
        folder: files in it show each row in full once, later its digest.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS}
        self._folder = folder
        self._written: set[str] = set()

    def note(self, kind: str, what: str, values: Iterable[Any]) -> None:
        """Add one digest."""
        lines, found = [_canonical(value) for value in values], self._found[kind]
        found.append((_digest(f"[{', '.join(lines)}]"), what))
        if self._folder:
            shown = [_digest(line) if line in self._written else line for line in lines]
            with (self._folder / f"{kind}.txt").open("a", encoding="utf-8", errors="surrogatepass") as file:
                file.write("\n".join([f"=== {kind} {len(found)}, {what}", *shown, ""]))
            self._written.update(lines)

    def digests(self) -> Digests:
        """All so far, by kind."""
        return {kind: " ".join(digest for digest, _ in found) for kind, found in self._found.items()}

    def differences(self, before: Digests, *, is_part: bool = False) -> list[str]:
        """For each kind, a line that names the first one that differs from these digests.

        Args:
            is_part: the session was not played to its end.
        """
        told = []
        for kind, found in self._found.items():
            known = before.get(kind, "").split()[: len(found) if is_part else None]
            for at, (old, (new, what)) in enumerate(zip_longest(known, found, fillvalue=("", "which is missing")), 1):
                if old != new:
                    told.append(f"{kind} {at} differs: {what} ({len(known)} were recorded, {len(found)} came)")
                    break
        return told


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


async def _summary(request: ChatRequest, *, is_slow: bool) -> str:
    """Rules and evenly spread lines of what is shown, about as many words as are asked for.

    A slow summariser takes longer for longer texts, and refuses one in seven.
    """
    system, shown = (str(message.content) for message in request.messages)
    await asyncio.sleep(1 + len(shown) / 4_000 if is_slow else 1)
    if is_slow and hashlib.sha256(shown.encode("utf-8", "replace")).digest()[0] % 7 == 0:
        return "I cannot help with that."
    asked = re.search(r"at most (\d+) words", system)
    lines = [line.strip()[:400] for line in shown.split("\n")[1:-1] if len(line.split()) > 3]
    many = max(1, len(" ".join(lines).split()) * 2 // int(asked[1] if asked else 300))
    rules = " ".join(line for line in lines if _RULE.search(line))[:300]
    return "\n".join([f"Goal: {lines[0]}", f"Standing rules: {rules or 'none'}", "State:", *lines[1::many]])


class Player:
    """Plays one session through the methods that hosts call, in virtual time, and notes it on a tape."""

    def __init__(self, script: Script, tape: Tape, cache: Path) -> None:
        self._script, self._tape = script, tape
        self._settings = {"cache": str(cache) if script.restarts_at else "memory", **script.settings}
        self._provider = ScriptedProvider(
            then=partial(_summary, is_slow=script.pause is not None),
            context_window=script.window,
            max_output_tokens=min(4_000, script.window // 8),
        )
        self._host = Recorder({"scripted": self._provider})
        self._requests = 0
        self._manager = self._new()

    def _new(self) -> SummarizingContextManager:
        now = asyncio.get_running_loop().time
        return SummarizingContextManager(self._host, config=self._settings, clock=now, now=now)

    async def play(self, most: int | None) -> None:
        """The session, up to so many requests."""
        await self._manager.prepare()
        for number, row in enumerate(self._script.rows, 1):
            if number == self._script.restarts_at:
                await self._restart()
            if number in self._script.steps:
                await self._do(*self._script.steps[number])
            if row["role"] == "assistant":
                await self._request(f"before row {number}")
            if self._requests == most:
                return await self._manager.close()
            await self._manager.add_message(row)
        await self._request("at the end")
        await self._end()

    async def _request(self, where: str) -> None:
        rows = await self._manager.get_messages_for_request(provider=self._provider)
        self._requests += 1
        self._tape.note("request", where, rows)
        if self._script.tells_usage:
            told = {"input_tokens": sum(len(str(row["content"])) for row in rows) // 4 + 500, "output_tokens": 50}
            event = {"provider": self._provider.name, "status": "ok", "usage": told}
            await self._manager.observe_response("llm:response", event)
        await self._rest()

    async def _rest(self) -> None:
        """Until nothing is under way, or the pause between requests; then note what was heard."""
        if self._script.pause is None:
            while left := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(left)
        else:
            await asyncio.sleep(self._script.pause)
        self._note()

    def _note(self) -> None:
        heard: list[tuple[str, Any]] = [(name, _untimed(data)) for name, data in self._host.events]
        asked = [("call", question(request)) for request in self._provider.requests]
        self._host.events.clear()
        self._provider.requests.clear()
        for name, data in heard:
            if name not in _OF_SUMMARIES:
                self._tape.note("event", f"{name} after request {self._requests}", [name, data])
        for name, data in sorted([*heard, *asked], key=repr):
            if name in _OF_SUMMARIES:
                self._tape.note("summary", f"{name} after request {self._requests}", [name, data])

    async def _do(self, name: str, *arguments: Any) -> None:
        """Call a method as a user does, and note what it returns."""
        try:
            returned = await getattr(self._manager, name)(*arguments)
        except SteeringError as error:
            returned = str(error)
        await self._rest()
        self._tape.note("event", f"{name}() after request {self._requests}", [name, returned])

    async def _restart(self) -> None:
        """The process ends; a new one gets the history that its host has saved."""
        saved = json.loads(json.dumps(await self._manager.get_messages()))
        await self._end()
        self._manager = self._new()
        await self._manager.prepare()
        await self._manager.set_messages(saved)

    async def _end(self) -> None:
        told = _untimed(asdict(await self._manager.statistics()))
        del told["parts"]  # the size of the rows that the tape has anyway
        self._tape.note("event", "the statistics", [told, await self._manager.get_token_count()])
        self._tape.note("event", "the history", untimed(await self._manager.get_messages()))
        await self._manager.finish()
        await self._manager.close()
        self._note()


def _untimed(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if not _TIMES.search(name)}


def taped(script: Script, folder: Path | None = None, most: int | None = None) -> Tape:
    """Play a session, up to so many requests; the tape of it."""
    tape = Tape(folder)
    random.seed(0)  # the jitter of retries

    async def play(cache: str) -> None:
        await Player(script, tape, Path(cache) / "summaries.db").play(most)

    logging.disable(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as cache:
            run_virtually(play(cache))
    finally:
        logging.disable(logging.NOTSET)
    return tape
