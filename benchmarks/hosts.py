"""`python -m benchmarks.hosts FOLDER`: long sessions under the real agent loops, against a strict server.

FOLDER holds checkouts of the Amplifier modules by name: `loop-basic`, `loop-streaming`, `provider-openai`. None of them
is part of this project; the package `openai` must be installed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import types
from pathlib import Path
from typing import Any

from amplifier_core import AmplifierSession, HookResult, ToolResult

from benchmarks.report import Figures, table
from benchmarks.strict_server import serving

LOOPS = ("loop-basic", "loop-streaming")
COLUMNS = ("loop", "requests", "faults", "compactions", "breaks", "cached")
BUDGET = 25_000
PROMPT = "You are the clerk of an order desk. Look each order up before you answer. " * 20


class Lookup:
    """A tool whose results fill the window."""

    name = "lookup"
    description = "Looks up an order."

    def __init__(self) -> None:
        self.input_schema = {"type": "object", "properties": {"order": {"type": "string"}}}

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        """A long record."""
        stops = "; ".join(f"{input['order']} stop {stop} weight {stop * 7 % 31} kg" for stop in range(40))
        return ToolResult(success=True, output={"order": input["order"], "history": stops})


def _config(loop: str, address: str) -> dict[str, Any]:
    settings = {"max_tokens": BUDGET, "cache": "memory"}
    options = {"base_url": address, "api_key": "none", "default_model": "gpt-5.5", "use_streaming": False}
    return {
        "session": {
            "orchestrator": {"module": loop, "config": {"stream_delay": 0}},
            "context": {"module": "context-summarize", "config": settings},
        },
        "providers": [{"module": "provider-openai", "config": options}],
        "tools": [{"module": "tool-lookup"}],
    }


async def run(loop: str, turns: int) -> Figures:
    """One session of so many turns; each takes two requests."""
    compactions, requests = itertools.count(), itertools.count(1)

    async def mounted(coordinator: Any, config: dict[str, Any]) -> None:
        await coordinator.mount("tools", Lookup(), name="lookup")

    async def compacted(event: str, data: dict[str, Any]) -> HookResult:
        next(compactions)
        return HookResult(action="continue")

    async def prompt() -> str:
        """With a status block that changes at every request, as hooks-status-context writes it."""
        status = f"Changed files: {next(requests)}. " * 20
        return f'{PROMPT}\n\n<system-reminder source="status">\n{status}\n</system-reminder>'

    tool = types.ModuleType("amplifier_module_tool_lookup")
    tool.mount = mounted  # type: ignore[attr-defined]
    sys.modules[tool.__name__] = tool
    with serving(BUDGET) as (address, state):
        session = AmplifierSession(_config(loop, address))
        await session.initialize()
        await session.coordinator.get("context").set_system_prompt_factory(prompt)
        session.coordinator.hooks.register("context:compaction", compacted, name="count")
        for turn in range(turns):
            await session.execute(f"Please find order number {turn} and tell me its state.")
        await session.cleanup()
    print(*state.faults[:2], sep="\n", file=sys.stderr)
    return {
        "loop": loop,
        "requests": len(state.prompts),
        "faults": len(state.faults),
        "compactions": next(compactions),
        "breaks": sum(_breaks(*pair) for pair in itertools.pairwise(state.prompts)),
        "cached": state.cached / max(1, state.tokens),
    }


def _breaks(earlier: list[str], later: list[str]) -> bool:
    """True where an earlier request, its last reminder aside, does not begin a later one."""
    kept = earlier[:-1] if "<system-reminder" in earlier[-1] else earlier
    return later[: len(kept)] != kept


def main() -> int:
    """Run all loops; 1 where the server refused a request."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=150, help="turns of a session; each takes two requests")
    given = parser.parse_args()
    sys.path[:0] = [str(path) for path in sorted(given.folder.iterdir()) if path.is_dir()]
    found = [asyncio.run(run(loop, given.turns)) for loop in LOOPS]
    print(table(found, COLUMNS))
    return int(any(one["faults"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
