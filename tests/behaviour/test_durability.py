"""What docs/privacy.md promises of the history's file: a call that has returned survives the end of its process."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from context_summarize.testing import JsonRow
from tests.support import effort
from tests.support.killed_writer import after, plan
from tests.support.managed import Managed
from tests.support.paths import ROOT

KILLS = int(os.environ.get("CONTEXT_SUMMARIZE_KILLS", str(effort.full(40, 6))))
"""Sessions that are killed."""
SAME_FILE = 4
"""Sessions in a row that continue one history."""


Writer = Callable[[int, int, float, Path], int]


@pytest.fixture
def killed(no_hang: None) -> Iterator[Writer]:
    """Has a session killed so many seconds after so many calls have returned; how many have returned then."""
    command = [sys.executable, "-m", "tests.support.killed_writer"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        given, told = process.stdin, process.stdout
        assert given is not None
        assert told is not None

        def kill(seed: int, calls: int, seconds: float, path: Path) -> int:
            print(seed, calls, seconds, path, file=given, flush=True)
            return sum(line == "done\n" for line in iter(told.readline, "gone\n"))

        yield kill
        given.close()
        assert process.wait() == 0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a kill takes nothing from the system, whatever the disk has of it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as name:
        yield Path(name)


def possible(before: list[JsonRow], seed: int, returned: int) -> list[list[JsonRow]]:
    """Every history that may be found: what was acknowledged, and as much as there may be of the call under way."""
    history = before
    for step in plan(seed)[:returned]:
        history = after(history, step)
    outcomes = [history]
    for step in plan(seed)[returned : returned + 1]:
        then = after(history, step)
        if step[0] == "grow":
            outcomes += [then[:length] for length in range(len(history), len(then))]
        outcomes.append(then)
    return outcomes


async def test_nothing_acknowledged_is_lost_by_a_kill(folder, killed, caplog):
    choice = random.Random(11)
    history: list[JsonRow] = []
    for seed in range(KILLS):
        signal.alarm(60)  # each session has a minute of its own
        path = folder / f"{seed // SAME_FILE}.jsonl"
        before = history if seed % SAME_FILE else []
        acknowledged = choice.choice([0, 1, 1, 2, choice.randrange(40)])
        seconds = choice.choice([0, choice.random() / 100])
        returned = await asyncio.to_thread(killed, seed, acknowledged, seconds, path)
        assert returned >= acknowledged
        next_session = Managed(persistence={"path": str(path)})
        history = await next_session.rows()
        await next_session.manager.close()
        assert history in possible(before, seed, returned), f"seed {seed}: {returned} calls had returned"
    assert [name for name in os.listdir(folder) if name.endswith(".tmp")] == []  # noqa: PTH208
    assert all("torn" in message for message in caplog.messages)
