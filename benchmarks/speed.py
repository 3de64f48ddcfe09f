"""`make bench` measures this module alone: the field's session, blocks of the event loop, functions.

    python -m benchmarks.speed            all of it, within three minutes
    python -m benchmarks.speed --ratio    CPU of a request beside PydanticAI's; needs the environment of the peers

Times are the smaller of clock and CPU, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import threading
import time
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Any

import context_summarize
from benchmarks import field
from benchmarks.peers import EVERYONE
from benchmarks.report import Figures, run_all, save, table
from benchmarks.run import play
from benchmarks.scores import cpu
from benchmarks.sessions import recorded
from benchmarks.tokens import Row
from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider

REPEATS = 3
_BEAT = 0.002
"""Seconds between two beats of the loop's heart."""


async def beat(blocks: list[float]) -> None:
    """Notes how late each beat comes: so long the event loop could do nothing else."""
    while True:
        due, used = time.perf_counter() + _BEAT, time.process_time()
        await asyncio.sleep(_BEAT)
        blocks.append(min(time.perf_counter() - due, time.process_time() - used))


async def fed(given: list[Row], window: int, every: int) -> SummarizingContextManager:
    """Returns a manager that got these rows, with a request before an assistant row, once in so many rows."""
    manager, provider = SummarizingContextManager(config={"cache": "memory"}), ScriptedProvider(context_window=window)
    due = 0
    for at, row in enumerate(given):
        if row["role"] == "assistant" and at >= due:
            await manager.get_messages_for_request(provider=provider)
            provider.requests.clear()
            await asyncio.sleep(_BEAT)
            due = at + every
        await manager.add_message(row)
    return manager


def rows(count: int) -> list[Row]:
    """Returns so many rows: the recording over and over, with other ids."""
    return recorded(copies=1 + count // 1_300)[:count]


def block(count: int, window: int, at_once: bool, characters: int) -> Figures:
    """Measures the longest block of the event loop, in a session or for rows that come at once; one row is large."""

    async def main() -> Figures:
        await (await fed(rows(100), window, 1)).close()  # loads what is loaded once a process
        words = "".join(f"line {at} of the log says nothing new\n" for at in range(characters // 38))
        given, blocks = rows(count), list[float]()
        given.insert(1, {"role": "user", "content": words})
        gc.collect()
        gc.freeze()
        beats = asyncio.create_task(beat(blocks))
        await asyncio.sleep(2 * _BEAT)
        if at_once:
            manager = SummarizingContextManager(config={"cache": "memory"})
            await manager.set_messages(given)
            await manager.get_messages_for_request(provider=ScriptedProvider())
        else:
            manager = await fed(given, window, 1)
        await asyncio.sleep(2 * _BEAT)
        beats.cancel()
        await manager.close()
        name = f"block, {count:,} rows{' at once' if at_once else ''}, window {window // 1_000}k, ms"
        return {"what": name, "value": 1_000 * max(blocks)}

    return asyncio.run(main())


async def traced(what: str, manager: SummarizingContextManager, provider: ScriptedProvider) -> list[Figures]:
    """Counts functions and files that one request runs; comprehensions and lambdas belong to the function around."""
    found, package = set[CodeType](), str(Path(context_summarize.__file__).parent)

    def called(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and not code.co_name.startswith("<"):
            found.add(code)

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        await manager.get_messages_for_request(provider=provider)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {code.co_filename for code in found}
    return [{"what": f"{what}: functions", "value": len(found)}, {"what": f"{what}: files", "value": len(files)}]


async def counted() -> list[Figures]:
    """Counts functions and files of the package that a quiet request and a first compaction run."""
    provider = ScriptedProvider(context_window=40_000)
    manager = SummarizingContextManager(config={"cache": "memory", "prefetch": False})
    given, found = iter(recorded()), list[Figures]()
    while len(found) < 4:
        await manager.add_message(next(given))
        if await manager.should_compact():
            found += await traced("first compaction", manager, provider)
        elif not found and await manager.get_token_count() > 8_000:
            await manager.get_messages_for_request(provider=provider)
            await manager.add_message(next(given))
            found += await traced("quiet request", manager, provider)
    await manager.close()
    return found


def measured() -> list[Figures]:
    """Measures blocks, each in a process of its own, and counts functions."""
    blocks = [(2_000, 40_000, False, 0), (6_000, 200_000, False, 0), (20_000, 40_000, True, 5_000_000)]
    return run_all(block, blocks, jobs=1) + asyncio.run(counted())


def requests(contestant: str) -> Figures:
    """Measures the CPU of a contestant's requests at a window of 40,000, with all of its own counting."""
    return cpu(play(EVERYONE[contestant], field.SESSIONS["field-40k"](), cached=False))


def ratio() -> list[Figures]:
    """Divides the CPU of our requests by that of PydanticAI's: medians of runs that take turns."""
    names = "Ours", "PydanticAI"
    found = run_all(requests, [(name,) for name in names * REPEATS], jobs=1)
    if any("missing" in one for one in found):
        return found
    told: Figures = {}
    for who, runs in zip(names, (found[::2], found[1::2]), strict=True):
        told |= {f"{who} {key}, ms": median(one[key] for one in runs) for key in runs[0]}
    pairs = list(zip(found[::2], found[1::2], strict=True))
    for key in ("cpu_mean", "cpu_p50"):
        told[f"{key}_ratio"] = median(one[key] / other[key] for one, other in pairs)
    counting = (one["cpu_mean"] / (other["cpu_mean"] - other["cpu_counting"]) for one, other in pairs)
    told["cpu_mean_ratio_without_its_counting"] = median(counting)
    return [{"what": name, "value": value} for name, value in told.items()]


def main() -> int:
    """Measures and prints; returns 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--ratio", action="store_true", help="CPU beside PydanticAI's")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all figures into this JSON file")
    given = parser.parse_args()
    if not given.ratio:
        print(table(run_all(field.cell, [("field-40k", "keeps-95", "Ours")]), field.COLUMNS), "\n")
    found = ratio() if given.ratio else measured()
    print(table(found, ("what", "value")))
    save(given.save, "speed ratio" if given.ratio else "speed", found)
    return int(any("missing" in one for one in found))


if __name__ == "__main__":
    sys.exit(main())
