"""Plays one small session, and tells in lines what each request is, so that a change of any of them can be read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import re
import tempfile
from pathlib import Path
from typing import Any

from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.errors import SteeringError
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.support.gated import question
from tests.support.paths import ROOT
from tests.support.recorder import Recorder, recording
from tests.support.views import nodes, notes, size
from tests.support.virtual import run_virtually

FILE = ROOT / "tests" / "data" / "recorded.txt"
ROWS, WINDOW, RESTART = 300, 8_000, 260
STEPS: dict[int, tuple[Any, ...]] = {
    30: ("pin", [2, 5]),
    150: ("preview",),
    151: ("compact", "refunds"),
    170: ("undo",),
    200: ("unpin",),
}
"""Before the row of this number: a method of the manager, and its arguments."""


def digest(value: Any) -> str:
    """The same for equal values, on every machine."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


async def summary(request: ChatRequest) -> str:
    """Evenly spread lines of what is shown, about as many words as are asked for."""
    system, shown = (str(message.content) for message in request.messages)
    await asyncio.sleep(1)
    asked = re.search(r"at most (\d+) words", system)
    lines = [line.strip()[:400] for line in shown.split("\n")[1:-1] if len(line.split()) > 3]
    many = max(1, len(" ".join(lines).split()) * 2 // int(asked[1] if asked else 300))
    return "\n".join([f"Goal: {lines[0]}", "State:", *lines[1::many]])


class Tape:
    """One session through the methods that hosts call, and the lines about it."""

    def __init__(self, cache: Path) -> None:
        self._provider = ScriptedProvider(then=summary, context_window=WINDOW, max_output_tokens=1_000)
        self._host = Recorder({"scripted": self._provider})
        self._cache = str(cache)
        self._manager = self._new()
        self._last: list[JsonRow] = []
        self._grown: list[tuple[int, list[JsonRow], list[str]]] = []
        """Requests that only grew since the last line: the number of the row behind, the view, and what was asked."""
        self.lines: list[str] = []

    def _new(self) -> SummarizingContextManager:
        now = asyncio.get_running_loop().time
        return SummarizingContextManager(self._host, cache=self._cache, clock=now, now=now)

    async def play(self) -> list[str]:
        """The session; the process ends once in it, and goes on over the same store."""
        await self._manager.prepare()
        for number, row in enumerate(recording()[:ROWS], 1):
            if number == RESTART:
                await self._restart()
            if number in STEPS:
                await self._step(*STEPS[number])
            if row["role"] == "assistant":
                await self._request(number)
            await self._manager.add_message(row)
        await self._request(ROWS + 1)
        self._tell_growth()
        await self._manager.close()
        return self.lines

    async def _request(self, number: int) -> None:
        view = await self._manager.get_messages_for_request(provider=self._provider)
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left)
        same = next((at for at, both in enumerate(zip(self._last, view, strict=False)) if both[0] != both[1]), None)
        asked = [question(request) for request in self._provider.requests]
        self._provider.requests.clear()
        self._last = view
        if same is None:
            self._grown.append((number, view, asked))
            return
        self._tell_growth()
        told = f"request before {number}: {len(view)} rows, {size(view)} tokens"
        self._tell(f"{told}, other rows from {same + 1} on", view)
        for node in nodes(view):
            first, last = node["metadata"]["messages"]
            self._tell(f"  summary of {first} to {last}, {size([node])} tokens", node)
        for row in filter(None, [notes(view)]):
            self._tell(f"  thread of {len(row['content'].splitlines())} lines, {size([row])} tokens", row)
        for text in asked:
            self._tell(f"  asked for a summary of {len(text)} characters", text)

    def _tell_growth(self) -> None:
        """One line for all requests that only grew."""
        if grown := self._grown:
            (first, *_), (last, view, _) = grown[0], grown[-1]
            asked = sum(len(texts) for *_, texts in grown)
            told = f"{len(grown)} before {first} to {last} grow to {len(view)} rows, {size(view)} tokens"
            self._tell(f"{told}; {asked} summaries asked for", grown)
        self._grown = []

    async def _step(self, name: str, *arguments: Any) -> None:
        try:
            returned = await getattr(self._manager, name)(*arguments)
        except SteeringError as error:
            returned = str(error)
        self._tell_growth()
        self.lines.append(f"{name}({', '.join(map(repr, arguments))}): {returned}")

    async def _restart(self) -> None:
        saved = json.loads(json.dumps(await self._manager.get_messages()))
        await self._manager.close()
        self._manager = self._new()
        await self._manager.prepare()
        await self._manager.set_messages(saved)
        self._tell_growth()
        self.lines.append("a new process")

    def _tell(self, line: str, value: Any) -> None:
        self.lines.append(f"{line} [{digest(value)}]")


def taped() -> list[str]:
    """The lines of the session, in virtual time."""
    random.seed(0)  # the jitter of retries

    async def play(cache: str) -> list[str]:
        return await Tape(Path(cache) / "summaries.db").play()

    logging.disable(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as cache:
            return run_virtually(play(cache))
    finally:
        logging.disable(logging.NOTSET)
