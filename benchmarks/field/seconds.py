"""Waiting in real seconds: `python -m benchmarks.field.seconds`, with a summariser that takes as long as ten requests.

The other scenarios of the field benchmark run in virtual time, in which a contestant's own work takes none. Here the
clock is the machine's: what a request waits for its rows includes planning, counting and converting.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.field.contestants import entries
from benchmarks.peers import Contestant, LoopClock, Row, Terms
from context_summarize.replay.session_files import read_session
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "examples" / "airline-desk.jsonl"
REQUEST_SECONDS = 0.1
"""A request of the session takes so long."""
SUMMARIES = 10
"""Requests that a summary takes as long as."""
_EVERY = 8
"""One line in so many is kept by the summariser."""


@dataclass(slots=True)
class Waited:
    """What one contestant made the session wait."""

    name: str
    requests: int = 0
    waited: float = 0.0
    """Seconds from asking for the rows until they were there, over all requests."""
    worst: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    error: str = ""
    """What ended the session early."""
    waits: list[float] = field(default_factory=list)


def shortened(shown: str, max_output: int | None) -> str:
    """A summary that takes no work: every eighth line of what is shown, no marks of its rows."""
    lines = [line for line in shown.splitlines() if len(line) > 20 and not line.startswith(("=", "#", "<"))]
    return "\n".join(lines[::_EVERY])[: 3 * (max_output or 1_000)] or "Nothing was said."


async def play(name: str, rows: Sequence[Row], budget: int) -> Waited:
    """Play the rows to one contestant.

    Raises:
        ImportError: the peer is not installed.
    """
    counter = TokenCounter()
    await counter.load()
    count = functools.lru_cache(maxsize=50_000)(counter.count)
    waited = Waited(name)

    async def answer(shown: str, max_output: int | None) -> str:
        waited.calls += 1
        await LoopClock().sleep(REQUEST_SECONDS * SUMMARIES)
        return shortened(shown, max_output)

    mean = sum(measure(row, count) for row in rows) / len(rows)
    terms = Terms(answer=answer, count=count, budget=budget, mean_row=mean, clock=LoopClock())
    contestant = entries()[name].make(terms)
    started = time.perf_counter()
    try:
        await _requests(contestant, rows, waited)
    except Exception as error:  # noqa: BLE001 (a peer may raise anything into its host: the session ends there)
        waited.error = f"{type(error).__name__}: {error}"[:200]
    finally:
        waited.seconds = time.perf_counter() - started
        await contestant.close()
    return waited


async def _requests(contestant: Contestant, rows: Sequence[Row], waited: Waited) -> None:
    for row in rows:
        if row["role"] == "assistant":
            asked = time.perf_counter()
            await contestant.view()
            took = time.perf_counter() - asked
            waited.requests += 1
            waited.waits.append(round(took, 4))
            waited.waited += took
            waited.worst = max(waited.worst, took)
            await LoopClock().sleep(REQUEST_SECONDS)
        await contestant.add(dict(row))


def table(played: Sequence[Waited]) -> str:
    """A line each, the shortest waiting first; ours against the best peer that got to the end."""
    ranked = sorted(played, key=lambda one: (bool(one.error), one.waited))
    lines = ["| | waited, s | worst, s | calls | requests |", "| --- | ---: | ---: | ---: | ---: |"]
    for one in ranked:
        name = f"{one.name} (stopped: {one.error})" if one.error else one.name
        lines.append(f"| {name} | {one.waited:.2f} | {one.worst:.2f} | {one.calls} | {one.requests} |")
    peers = [one for one in ranked if not one.error and one.calls and not one.name.startswith("ours")]
    ours = next((one for one in ranked if one.name == "ours"), None)
    if ours and peers:
        lines += ["", f"ours waits {ours.waited / peers[0].waited:.2f}x as long as {peers[0].name}"]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a contestant is not installed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.field.seconds", description=__doc__)
    parser.add_argument("--rows", type=int, default=600, metavar="N", help="of the recording, from its start")
    parser.add_argument("--budget", type=int, default=12_000, metavar="TOKENS")
    parser.add_argument("--contestants", nargs="+", metavar="NAME", help="default: ours and all peers")
    parser.add_argument("--save", type=Path, metavar="FILE", help="all figures, as JSON")
    options = parser.parse_args(arguments)
    rows = read_session(RECORDING)[: options.rows]
    names = options.contestants or ["ours", *(name for name, one in entries().items() if one.is_peer)]
    played: list[Waited] = []
    missing = False
    for name in names:
        try:
            played.append(asyncio.run(play(name, rows, options.budget)))
        except ImportError as error:
            missing = True
            print(f"{name} is not installed ({error}); make bench-peers installs it", file=sys.stderr)
            continue
        if options.save:
            options.save.write_text(json.dumps([asdict(one) for one in played], indent=1), "utf-8")
        print(f"{name}: {played[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    print(table(played))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
