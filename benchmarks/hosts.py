"""`python -m benchmarks.hosts FOLDER`: sessions under the real agent loops and providers, against a strict server.

FOLDER holds checkouts of the Amplifier modules by name: `loop-basic`, `loop-streaming`, `provider-openai`,
`provider-vllm`. None of them is part of this project; what they import must be installed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import sys
import types
from pathlib import Path
from typing import Any

from amplifier_core import AmplifierSession, HookResult, ToolResult

from benchmarks.report import Figures, table
from benchmarks.strict_server import State, serving

LOOPS = ("loop-basic", "loop-streaming")
PROVIDERS = {"provider-openai": "enable_response_chaining", "provider-vllm": "enable_state"}
"""Module → the setting that makes it chain requests on the server."""
COLUMNS = ("loop", "provider", "chains", "requests", "faults", "compactions", "breaks", "cached", "warnings")
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
        order = str(input["order"])
        stops = "; ".join(f"{order} stop {stop} weight {stop * 7 % 31} kg" for stop in range(40))
        return ToolResult(success=True, output={"order": order, "history": stops})


async def _mount_tool(coordinator: Any, config: dict[str, Any]) -> None:
    await coordinator.mount("tools", Lookup(), name="lookup")


class StatusHook:
    """Keeps a status block in the system prompt that changes with every request, as hooks-status-context does."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._wrapped: Any = None
        self._count = itertools.count(1)

    async def on_request(self, event: str, data: dict[str, Any]) -> HookResult:
        """Wraps the factory of the prompt, once."""
        context = self._coordinator.get("context")
        base = getattr(context, "_system_prompt_factory", None)
        if base is not None and base is not self._wrapped:

            async def wrapped() -> str:
                status = f"Changed files: {next(self._count)}. " * 20
                return f'{await base()}\n\n<system-reminder source="status">\n{status}\n</system-reminder>'

            self._wrapped = wrapped
            await context.set_system_prompt_factory(wrapped)
        return HookResult(action="continue")


class Heard(logging.Handler):
    """Keeps what the package warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.lines.append(record.getMessage())


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


async def run(loop: str, provider: str, *, chains: bool, turns: int) -> Figures:
    """One session of so many turns; each takes two requests."""
    heard, compactions = Heard(), itertools.count()
    log = logging.getLogger("context_summarize")
    log.addHandler(heard)
    tool = types.ModuleType("amplifier_module_tool_lookup")
    tool.mount = _mount_tool  # type: ignore[attr-defined]
    sys.modules[tool.__name__] = tool
    with serving(BUDGET) as (address, state):
        options = {"base_url": address, "api_key": "none", "default_model": "gpt-5.5", "use_streaming": False}
        session = AmplifierSession(_config(loop, provider, {**options, PROVIDERS[provider]: chains}))
        await session.initialize()
        context, hooks = session.coordinator.get("context"), session.coordinator.hooks

        async def compacted(event: str, data: dict[str, Any]) -> HookResult:
            next(compactions)
            return HookResult(action="continue")

        async def prompt() -> str:
            return PROMPT

        await context.set_system_prompt_factory(prompt)
        hooks.register("context:compaction", compacted, name="count")
        hooks.register("provider:request", StatusHook(session.coordinator).on_request, name="status")
        for turn in range(turns):
            await session.execute(f"Please find order number {turn} and tell me its state.")
        await session.cleanup()
    log.removeHandler(heard)
    for line in [*state.faults[:2], *heard.lines[:2]]:
        print(f"    {line[:160]}", file=sys.stderr)
    head = {"loop": loop, "provider": provider, "chains": sum(one.chained for one in state.sent)}
    return {**head, "compactions": next(compactions), "warnings": len(heard.lines), **_seen(state)}


def _seen(state: State) -> Figures:
    """What the server saw: a break is a request that an earlier one is no prefix of, its last reminders aside."""
    breaks = 0
    for earlier, later in itertools.pairwise(state.sent):
        kept = earlier.items[:-1] if "<system-reminder" in earlier.items[-1] else earlier.items
        breaks += later.items[: len(kept)] != kept
    cached = sum(one.cached for one in state.sent) / max(1, sum(one.tokens for one in state.sent))
    return {"requests": len(state.sent), "faults": len(state.faults), "breaks": breaks, "cached": cached}


def main() -> int:
    """Run all pairs; 1 where the server refused a request."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=150, help="turns of a session; each takes two requests")
    given = parser.parse_args()
    sys.path[:0] = [str(path) for path in sorted(given.folder.iterdir()) if path.is_dir()]
    pairs = itertools.product(LOOPS, PROVIDERS, (False, True))
    found = [asyncio.run(run(loop, name, chains=chains, turns=given.turns)) for loop, name, chains in pairs]
    print(table(found, COLUMNS))
    return int(any(one["faults"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
