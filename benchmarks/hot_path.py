"""Where the time of a session goes: the recorded session under cProfile, `python -m benchmarks.hot_path`."""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import time

from benchmarks.peers.check import recorded
from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter


async def session(rows: list[dict[str, object]], profile: cProfile.Profile) -> float:
    """Seconds of `add_message` and views over the rows; the provider's own time is in them, and is next to none."""
    provider = ScriptedProvider(then="Goal: flights. State: booked.", context_window=40_000, max_output_tokens=4_000)
    manager = SummarizingContextManager()
    await TokenCounter().load()
    profile.enable()
    started = time.process_time()
    for row in rows:
        if row["role"] == "assistant":
            await manager.get_messages_for_request(provider=provider)
        await manager.add_message(row)
        await asyncio.sleep(0)
    seconds = time.process_time() - started
    profile.disable()
    await manager.close()
    return seconds


def main() -> None:
    """Print the functions that take most."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot_path", description=__doc__)
    parser.add_argument("--sort", default="tottime", choices=("tottime", "cumtime", "ncalls"))
    parser.add_argument("--lines", type=int, default=25)
    options = parser.parse_args()
    rows = recorded()
    requests = sum(row["role"] == "assistant" for row in rows)
    profile = cProfile.Profile()
    seconds = asyncio.run(session(rows, profile))
    print(f"{len(rows)} rows, {requests} requests, {1000 * seconds / requests:.2f} ms a request under the profiler")
    pstats.Stats(profile).sort_stats(options.sort).print_stats(options.lines)


if __name__ == "__main__":
    main()
