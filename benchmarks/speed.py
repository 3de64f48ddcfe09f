"""Speed and memory of the hot paths, as ratios within one run: `make bench`.

Histories of 1,000, 10,000 and 100,000 rows (the recorded airline session, repeated with fresh call ids) are fed to a
manager with a 60k window and the offline provider. Absolute times depend on the machine; the bars are ratios, but for
the one that says what a view may cost a person (1 ms at p50).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from context_summarize import SummarizingContextManager
from context_summarize.providers.offline import OfflineProvider
from context_summarize.tokens.counter import TokenCounter

RECORDING = Path(__file__).parent.parent / "examples" / "airline-desk.jsonl"
WINDOW, OUTPUT = 60_000, 4_000
SAMPLES = 300


def rows(total: int) -> Iterator[dict[str, Any]]:
    """`total` rows of the recording, repeated; call ids differ between repetitions."""
    lines = RECORDING.read_text("utf-8").splitlines()
    for at in range(total):
        turn, line = divmod(at, len(lines))
        yield json.loads(lines[line].replace('"call_', f'"call_{turn}_'))


def percentile(times: list[float], share: float) -> float:
    """Milliseconds at this share of the sorted times."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


async def measure(total: int) -> dict[str, float]:
    """p50 and p99 of both methods after `total` rows, in milliseconds."""
    counter = TokenCounter()
    await counter.load()
    provider = OfflineProvider(counter.count, context_window=WINDOW, max_output_tokens=OUTPUT)
    manager = SummarizingContextManager()
    history = list(rows(total + SAMPLES))
    added: list[float] = []
    viewed: list[float] = []
    for at, row in enumerate(history):
        start = time.perf_counter()
        await manager.add_message(row)
        added.append(time.perf_counter() - start)
        if at >= total or at % 40 == 0:
            start = time.perf_counter()
            await manager.get_messages_for_request(provider=provider)
            if at >= total:
                viewed.append(time.perf_counter() - start)
    view = await manager.get_messages_for_request(provider=provider)
    await manager.close()
    last = added[-SAMPLES:]
    return {
        "add p50": percentile(last, 0.5),
        "add p99": percentile(last, 0.99),
        "view p50": percentile(viewed, 0.5),
        "view p99": percentile(viewed, 0.99),
        "view rows": len(view),
    }


async def memory(total: int) -> float:
    """Bytes of a manager that was fed `total` rows over the bytes of those rows alone (the rank table aside)."""
    counter = TokenCounter()
    await counter.load()
    gc.collect()
    tracemalloc.start()
    raw = list(rows(total))
    gc.collect()
    alone = tracemalloc.get_traced_memory()[0]
    del raw
    gc.collect()
    base = tracemalloc.get_traced_memory()[0]
    provider = OfflineProvider(counter.count, context_window=WINDOW, max_output_tokens=OUTPUT)
    manager = SummarizingContextManager()
    for at, row in enumerate(rows(total)):
        await manager.add_message(row)
        if at % 40 == 0:
            await manager.get_messages_for_request(provider=provider)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - base
    snapshot = tracemalloc.take_snapshot() if os.environ.get("WHERE") else None
    tracemalloc.stop()
    for line in snapshot.statistics("lineno")[:12] if snapshot else ():
        print(line)
    await manager.close()
    return held / alone


def import_cost(runs: int = 5) -> tuple[float, float]:
    """(ms of `import amplifier_core`, ms that our import adds), the smallest of several fresh interpreters."""
    # amplifier_core loads its message models lazily; a session that uses any provider has them loaded.
    code = (
        "import time; t = time.perf_counter(); import amplifier_core, amplifier_core.message_models;"
        " u = time.perf_counter(); import context_summarize; print(u - t, time.perf_counter() - u)"
    )
    found = []
    for _ in range(runs):
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        found.append((float(out[0]) * 1000, float(out[1]) * 1000))
    return min(first for first, _ in found), min(second for _, second in found)


def main() -> int:
    """Print the tables; exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--memory-rows", type=int, default=10_000)
    options = parser.parse_args()
    console = Console()
    figures = {size: asyncio.run(measure(size)) for size in options.sizes}
    table = Table(title=f"Milliseconds per call, {WINDOW:,}-token window, after this many rows")
    table.add_column("rows", justify="right")
    for name in ("add p50", "add p99", "view p50", "view p99", "view rows"):
        table.add_column(name, justify="right")
    for size, found in figures.items():
        shown = [f"{value:.3f}" if name != "view rows" else f"{value:.0f}" for name, value in found.items()]
        table.add_row(f"{size:,}", *shown)
    console.print(table)
    small, large = figures[options.sizes[0]], figures[options.sizes[-1]]
    share = asyncio.run(memory(options.memory_rows))
    core, ours = import_cost()
    bars = [
        ("view p50, largest over smallest history", large["view p50"] / small["view p50"], 2.0),
        ("view p50, ms", max(found["view p50"] for found in figures.values()), 1.0),
        ("add_message p50, largest over smallest history", large["add p50"] / small["add p50"], 2.0),
        (f"memory over raw rows ({options.memory_rows:,} rows)", share, 1.3),
        (f"import beside amplifier_core ({core:.0f} ms), ms", ours, 100.0),
    ]
    verdict = Table(title="Bars")
    for name in ("figure", "measured", "at most", ""):
        verdict.add_column(name, justify="left" if name in ("figure", "") else "right")
    for name, value, most in bars:
        verdict.add_row(name, f"{value:.2f}", f"{most:g}", "ok" if value <= most else "MISSED")
    console.print(verdict)
    return 0 if all(value <= most for _, value, most in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
