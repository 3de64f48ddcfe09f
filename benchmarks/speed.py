"""`make bench`: this module alone: the field's session, CPU of requests, blocks of the event loop, memory, imports.

    python -m benchmarks.speed            all of it, within three minutes
    python -m benchmarks.speed --ratio    CPU of a request beside PydanticAI's; needs the environment of the peers

Times are the smaller of clock and CPU, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median

from benchmarks import field, trace
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


def rows(count: int) -> list[Row]:
    """So many rows: the recording over and over, with other ids, and out of the garbage collector's sight."""
    made = list(itertools.islice(recorded(copies=1 + count // 1_300), count))
    gc.collect()
    gc.freeze()
    return made


async def warm() -> None:
    """Load what is loaded once a process, such as the ranks of tokens."""
    manager = SummarizingContextManager(config={"cache": "memory"})
    await manager.set_messages(recorded()[:300])
    await manager.get_messages_for_request(provider=ScriptedProvider())
    await manager.close()


class Heart:
    """Beats in the event loop, and notes the longest time for which it could not."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._beat: asyncio.TimerHandle | None = None

    @contextmanager
    def beating(self) -> Iterator[Heart]:
        """Beat within."""
        self._arm()
        try:
            yield self
        finally:
            if self._beat is not None:
                self._beat.cancel()

    def _arm(self) -> None:
        due, used = time.perf_counter() + _BEAT, time.process_time()
        self._beat = asyncio.get_running_loop().call_later(_BEAT, self._on_beat, due, used)

    def _on_beat(self, due: float, used: float) -> None:
        self.longest = max(self.longest, min(time.perf_counter() - due, time.process_time() - used))
        self._arm()


def block_of_session(window: int, count: int) -> Figures:
    """The longest block while a session goes on whose summaries are ready at once."""

    async def main() -> Figures:
        await warm()
        manager, provider = SummarizingContextManager(config={"cache": "memory"}), ScriptedProvider()
        provider.context_window, given = window, rows(count)
        with Heart().beating() as heart:
            await asyncio.sleep(2 * _BEAT)
            for row in given:
                if row["role"] == "assistant":
                    await manager.get_messages_for_request(provider=provider)
                    provider.requests.clear()
                    await asyncio.sleep(_BEAT)
                await manager.add_message(row)
        await manager.close()
        return {"what": f"block, {count:,} rows at {window // 1000}k, ms", "value": 1_000 * heart.longest}

    return asyncio.run(main())


def block_of_rows(count: int, characters: int) -> Figures:
    """The longest block and the seconds of the first request, for rows that come at once, one of them large."""

    async def main() -> Figures:
        await warm()
        manager, provider = SummarizingContextManager(config={"cache": "memory"}), ScriptedProvider()
        given = rows(count)
        words = "".join(f"line {at} of the log says nothing new\n" for at in range(characters // 38))
        given.insert(1, {"role": "user", "content": words[:characters]})
        with Heart().beating() as heart:
            await asyncio.sleep(2 * _BEAT)
            started = time.perf_counter()
            await manager.set_messages(given)
            await manager.get_messages_for_request(provider=provider)
            seconds = time.perf_counter() - started
            await asyncio.sleep(2 * _BEAT)
        await manager.close()
        name = f"block, {count:,} rows and one of {characters / 1e6:g} MB at once, ms"
        return {"what": name, "value": 1_000 * heart.longest, "first request, s": seconds}

    return asyncio.run(main())


def memory(count: int) -> Figures:
    """Bytes of a manager that was fed so many rows, over the bytes of those rows alone."""

    async def main() -> Figures:
        await warm()
        tracemalloc.start()
        raw = recorded(copies=1 + count // 1_300)[:count]
        alone = tracemalloc.get_traced_memory()[0]
        manager, provider = SummarizingContextManager(config={"cache": "memory"}), ScriptedProvider()
        for at, row in enumerate(raw):
            await manager.add_message(row)
            if at % 40 == 0:
                await manager.get_messages_for_request(provider=provider)
                provider.requests.clear()
        del raw, row
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        await manager.close()
        return {"what": f"memory over {count:,} raw rows, ratio", "value": held / alone}

    return asyncio.run(main())


def startup(runs: int) -> Figures:
    """What our import adds to amplifier_core's, the smallest of several fresh interpreters."""
    # amplifier_core loads its message models lazily; a session that uses any provider has them loaded.
    code = (
        "import time, amplifier_core, amplifier_core.message_models; t = time.process_time();"
        " import context_summarize; print(time.process_time() - t)"
    )
    command = [sys.executable, "-c", code]
    found = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)]
    return {"what": "import of the package, ms", "value": 1_000 * min(found)}


def measured() -> list[Figures]:
    """Blocks, memory and imports, each in a process of its own, one after the other."""
    found = run_all(block_of_session, [(40_000, 2_000), (200_000, 6_000)], jobs=1)
    found += run_all(block_of_rows, [(20_000, 5_000_000)], jobs=1)
    return [*found, *run_all(memory, [(5_000,)], jobs=1), *run_all(startup, [(5,)], jobs=1)]


def requests(contestant: str) -> Figures:
    """CPU of a contestant's requests at a window of 40,000, with all of its own counting."""
    return cpu(play(EVERYONE[contestant], field.SESSIONS["field-40k"](), cached=False))


def ratio() -> Figures:
    """CPU of our requests over PydanticAI's: medians over runs that take turns."""
    names = ["Ours", "PydanticAI"] * REPEATS
    found = run_all(requests, [(name,) for name in names], jobs=1)
    by_name = {name: [one for who, one in zip(names, found, strict=True) if who == name] for name in names[:2]}
    told: Figures = {name: {key: median(one[key] for one in runs) for key in runs[0]} for name, runs in by_name.items()}
    for key in ("cpu_mean", "cpu_p50"):
        pairs = list(zip(by_name["Ours"], by_name["PydanticAI"], strict=True))
        told[f"{key}_ratio"] = median(ours[key] / peer[key] for ours, peer in pairs)
    told["cpu_mean_ratio_without_its_counting"] = fmean(
        ours["cpu_mean"] / (peer["cpu_mean"] - peer["cpu_counting"]) for ours, peer in pairs
    )
    return told


def baseline(jobs: int = 1) -> Figures:
    """For `benchmarks.baseline`."""
    del jobs
    return {"cpu_ms": ratio(), **{one["what"]: one["value"] for one in measured() if "what" in one}}


def main() -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--ratio", action="store_true", help="CPU beside PydanticAI's")
    parser.add_argument("--save", type=Path, metavar="FILE", help="all figures as JSON")
    given = parser.parse_args()
    if given.ratio:
        told = ratio()
        found = [{"what": name, "value": value} for name, value in told.items() if isinstance(value, float)]
    else:
        played = run_all(field.cell, [("field-40k", "keeps-95", "Ours")], jobs=1)
        print(table(played, field.COLUMNS), "\n")
        counts = [
            {"what": f"{what}: {key}", "value": n} for what, one in trace.baseline().items() for key, n in one.items()
        ]
        found = [*measured(), *counts]
    print(table(found, ("what", "value", "first request, s")))
    save(given.save, found)
    return int(any("missing" in one for one in found))


if __name__ == "__main__":
    sys.exit(main())
