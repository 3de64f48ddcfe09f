"""`python -m benchmarks.hosts FOLDER`: sessions under the real loops and providers, with and without chaining.

FOLDER holds checkouts of the Amplifier modules by name: `loop-basic`, `loop-streaming`, `loop-events`,
`provider-openai`, `provider-vllm`. None of them is part of this project.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amplifier_core import AmplifierSession, HookResult, ToolResult

from benchmarks.hosts.server import Sent, Server

LOOPS = ("loop-basic", "loop-streaming", "loop-events")
PROVIDERS = {"provider-openai": "enable_response_chaining", "provider-vllm": "enable_state"}
"""Module → the setting that makes it chain."""
BUDGET = 25_000
PROMPT = "You are the clerk of an order desk. Look each order up before you answer. " * 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one session came to."""

    requests: int
    faults: list[str]
    compactions: int
    breaks: int
    """Requests that an earlier one is no prefix of, its last reminders aside."""
    cached: float
    """Share of the input that the prompt cache holds."""
    chained: int
    waits: list[str]
    """Warnings of ours."""
    coverage: float
    """Share of the exact values of summarised rows that the summaries hold."""


class Lookup:
    """A tool whose results fill the window."""

    name = "lookup"
    description = "Looks up an order."

    def __init__(self) -> None:
        self.input_schema = {"type": "object", "properties": {"order": {"type": "string"}}}

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        order = str(input["order"])
        stops = "; ".join(f"{order} stop {stop} weight {stop * 7 % 31} kg" for stop in range(40))
        return ToolResult(success=True, output={"order": order, "history": stops})


class StatusHook:
    """Keeps a status block in the system prompt that changes with every request.

    The wrapping follows hooks-status-context f7b6fdd (`_ensure_prefix_placement`): read the factory, wrap, set again.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._wrapped: Any = None
        self._count = itertools.count(1)

    async def on_request(self, event: str, data: dict[str, Any]) -> HookResult:
        context = self._coordinator.get("context")
        base = getattr(context, "_system_prompt_factory", None)
        if base is not None and base is not self._wrapped:

            async def wrapped() -> str:
                status = f"Changed files: {next(self._count)}. " * 20
                return f'{await base()}\n\n<system-reminder source="status">\n{status}\n</system-reminder>'

            self._wrapped = wrapped
            await context.set_system_prompt_factory(wrapped)
        return HookResult(action="continue")


class Warnings(logging.Handler):
    """Keeps what the package warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _install(module_id: str, mount: Any) -> None:
    module = types.ModuleType(f"amplifier_module_{module_id.replace('-', '_')}")
    module.mount = mount  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module


async def _mount_tool(coordinator: Any, config: dict[str, Any]) -> None:
    await coordinator.mount("tools", Lookup(), name="lookup")


def _window(loop: str) -> int:
    # loop-events sends the whole history, which no context manager can change: its server needs room for it
    return 1_000_000 if loop == "loop-events" else BUDGET


def _config(loop: str, provider: str, options: dict[str, Any]) -> dict[str, Any]:
    settings = {"max_tokens": BUDGET, "cache": "memory", "elide_tool_results": None}
    return {
        "session": {
            "orchestrator": {"module": loop, "config": {"stream_delay": 0}},
            "context": {"module": "context-summarize", "config": settings},
        },
        "providers": [{"module": provider, "config": options}],
        "tools": [{"module": "tool-lookup"}],
    }


async def run(loop: str, provider: str, *, chained: bool, turns: int) -> Outcome:
    """One session of so many turns; each takes two requests."""
    heard, compactions = Warnings(), 0
    logging.getLogger("context_summarize").addHandler(heard)
    _install("tool-lookup", _mount_tool)
    with Server(_window(loop)) as server:
        options = {"base_url": server.address, "api_key": "none", "default_model": "gpt-5.5", "use_streaming": False}
        session = AmplifierSession(_config(loop, provider, {**options, PROVIDERS[provider]: chained}))
        await session.initialize()
        context, hooks = session.coordinator.get("context"), session.coordinator.hooks

        async def told(event: str, data: dict[str, Any]) -> HookResult:
            nonlocal compactions
            compactions += 1
            return HookResult(action="continue")

        async def prompt() -> str:
            return PROMPT

        await context.set_system_prompt_factory(prompt)
        hooks.register("context:compaction", told, name="count")
        hooks.register("provider:request", StatusHook(session.coordinator).on_request, name="status")
        for turn in range(turns):
            await session.execute(f"Please find order number {turn} and tell me its state.")
            await context.settle()
        statistics = await context.statistics()
        await session.cleanup()
    logging.getLogger("context_summarize").removeHandler(heard)
    sent = server.state.sent
    return Outcome(
        requests=len(sent),
        faults=server.state.faults,
        compactions=compactions,
        breaks=sum(not _continues(*pair) for pair in itertools.pairwise(sent)),
        cached=sum(one.cached for one in sent) / max(1, sum(one.tokens for one in sent)),
        chained=sum(one.chained for one in sent),
        waits=heard.lines,
        coverage=statistics.coverage or 0.0,
    )


def _continues(earlier: Sent, later: Sent) -> bool:
    kept = earlier.items[:-1] if "<system-reminder" in earlier.items[-1] else earlier.items
    return later.items[: len(kept)] == kept


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.hosts", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=150, help="turns of a session; each takes two requests")
    parser.add_argument("--loop", choices=LOOPS, action="append")
    given = parser.parse_args()
    sys.path[:0] = [str(path) for path in sorted(given.folder.iterdir()) if path.is_dir()]
    print(f"{'loop':<15} {'provider':<16} {'chain':<6} requests faults compactions breaks cached coverage warnings")
    for loop, provider, chained in itertools.product(given.loop or LOOPS, PROVIDERS, (False, True)):
        found = asyncio.run(run(loop, provider, chained=chained, turns=given.turns))
        named = f"{loop:<15} {provider:<16} {'yes' if chained else 'no':<6}"
        counts = f"{found.requests:>8} {len(found.faults):>6} {found.compactions:>11} {found.breaks:>6}"
        shares = f"{found.cached:>6.1%} {found.coverage:>8.1%}"
        print(f"{named} {counts} {shares} {len(found.waits):>8}", flush=True)
        for line in [*found.faults[:2], *found.waits[:2]]:
            print(f"    {line[:160]}")


if __name__ == "__main__":
    main()
