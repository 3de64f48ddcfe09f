"""The store in a file: several processes at once, and processes that die."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from context_summarize.stores.sqlite import SqliteStore
from tests.unit.stores.sqlite.support import database

WRITE = """
import asyncio, os, sys
from pathlib import Path
from context_summarize.stores.sqlite import SqliteStore
from context_summarize.core.nodes import CompactionRecord, Summary

async def write(path, name, count, size):
    store = SqliteStore(Path(path), busy_seconds=50)
    for index in range(int(count)):
        key = f"{name}-{index}"
        await store.put(Summary(key, 0, key + "x" * (index * 997 % int(size)), (), 1, 2))
        await store.put_record(CompactionRecord(key, 1, 1, 512, 100, ()))
        print(key, flush=True)
    await store.close()

print("ready", flush=True)
for name in sys.stdin:
    child = os.fork()  # a new process that need not import anything
    if not child:
        asyncio.run(write(sys.argv[1], name.strip(), *sys.argv[2:]))
        os._exit(0)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(f"\\nended {status}", flush=True)
"""
"""Starts a process for every name that it is given, which keeps entries and prints the key of each once it is kept."""


class Writers:
    """Processes that write to one file, one after the other."""

    def __init__(self, path: Path, count: int, size: int) -> None:
        command = [sys.executable, "-c", WRITE, str(path), str(count), str(size)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"

    def start(self, name: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def rest(self) -> tuple[list[str], int]:
        """What the writer told until it ended, and how it ended."""
        told = []
        while not (line := self.line()).startswith("ended"):
            told.append(line)
        return told, int(line.split()[1])

    def end(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


class TestProcesses:
    async def test_several_processes_make_and_fill_one_file(self, path: Path, no_hang: None) -> None:
        """They start at the same moment, on a file that is not there; nobody's entry is lost."""
        names = "abc"
        writers = [Writers(path, 100, 2_000) for _ in names]
        for each, name in zip(writers, names, strict=True):
            each.start(name)
        for each, name in zip(writers, names, strict=True):
            (_, *told), status = each.rest()
            assert told == [*(f"{name}-{index}" for index in range(100)), ""]
            assert status == 0
            each.end()
        keys = {f"{name}-{index}" for name in names for index in range(100)}
        store = SqliteStore(path)
        assert (await store.get(sorted(keys))).keys() == keys
        found = await store.statistics()
        assert (found.summaries, found.records) == (300, 300)
        await store.close()

    async def test_a_process_killed_in_mid_write_loses_nothing_that_it_told(self, path: Path, no_hang: None) -> None:
        """Fifty times, at a random moment of opening or writing, alone or beside a process that reads."""
        rng = random.Random(4)
        store = SqliteStore(path, busy_seconds=30)
        writers = Writers(path, 1_000_000, 20_000)
        kept: set[str] = set()
        for name in range(50):
            writers.start(str(name))
            process = int(writers.line())
            told = [writers.line() for _ in range(rng.choice([0, 1, 10, 30]))]
            await asyncio.sleep(rng.uniform(0, 0.005))
            os.kill(process, signal.SIGKILL)
            rest, status = writers.rest()
            assert status == signal.SIGKILL
            # A line may be torn at the end: the key was kept, but nobody was told so.
            fresh = {key for key in told + rest[:-1] if key}
            found = await store.get(sorted(fresh))
            assert all(found[key].text.startswith(key) for key in fresh)
            assert all([await store.find_records([key]) for key in fresh])
            kept |= fresh
            if rng.random() < 0.5:
                await store.close()
            with database(path) as other:
                assert other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        writers.end()
        assert len(kept) > 300
        assert (await store.get(sorted(kept))).keys() == kept
        await store.close()
