"""Sessions under Amplifier's own loops and providers: is every request accepted, and how much of it is cached?

python -m benchmarks.hosts.sessions [--requests 300] [--unknown-window]

The server's window is a tenth above the budget. With --unknown-window no setting says how large it is: the module has
to learn it from the first refusal. `make bench-hosts` installs what this needs.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from amplifier_core import AmplifierSession, ToolResult
from amplifier_core.models import HookResult

from benchmarks.hosts.server import Item, Model, message, serving
from benchmarks.report import Figures, run_all, table
from benchmarks.sessions import reader, recorded
from benchmarks.tokens import calls_of, count

BUDGETS = {"desk": 16_000, "reader": 40_000}
"""Tokens that a request may hold, by session: each is some three windows long."""
HOSTS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    f"{loop}, {name}": (f"loop-{loop}", provider, settings)
    for loop in ("basic", "streaming")
    for name, provider, settings in (
        ("openai", "provider-openai", {"enable_response_chaining": False}),
        ("openai with chain", "provider-openai", {"enable_response_chaining": True}),
        ("vllm", "provider-vllm", {}),
    )
}
COLUMNS = (
    *("session", "host", "requests", "refused", "faults", "compactions", "breaks elsewhere"),
    *("equal", "equal between compactions", "largest", "window"),
)


def play(session: str, host: str, requests: int, unknown_window: bool) -> Figures:
    """Plays one session under one host."""
    return asyncio.run(_play(session, host, requests, unknown_window))


async def _play(session: str, host: str, requests: int, unknown_window: bool) -> Figures:
    budget = BUDGETS[session]
    rows = recorded(2) if session == "desk" else reader(budget, reads=2 * requests).rows
    prompts = [row["content"] for row in rows if row["role"] == "user"]
    results = {row["tool_call_id"]: row["content"] for row in rows if row["role"] == "tool"}
    said = [row for row in rows if row["role"] == "assistant"]
    answers = [[_call(call) for call in calls_of(row)] or [message(row["content"] or "Yes.")] for row in said]
    model = Model(answers[: requests - 1], int(1.1 * budget), count)
    loop, provider, given = HOSTS[host]
    compactions: set[int] = set()

    async def compacted(event: str, data: Mapping[str, Any]) -> Any:
        del event, data
        compactions.add(len(model.requests))
        return HookResult(action="continue")

    with serving(model.respond) as address:
        settings = {"cache": "memory", **({} if unknown_window else {"max_tokens": budget})}
        plan = {
            "session": {
                "orchestrator": {"module": loop, "config": {"max_iterations": 100}},
                "context": {"module": "context-summarize", "config": settings},
            },
            "providers": [{"module": provider, "config": {**_PROVIDER, **given, "base_url": address}}],
        }
        async with AmplifierSession(plan) as live:
            for name in {call["tool"] for row in said for call in calls_of(row)}:
                await live.coordinator.mount("tools", _Tool(name, results), name=name)
            live.coordinator.hooks.register("context:post_compact", compacted, name="benchmark")
            await _talk(live, itertools.chain(prompts, itertools.repeat("Please go on.")), model, requests)
    return {"session": session, "host": host, **_figures(model, compactions)}


async def _talk(live: Any, prompts: Iterator[str], model: Model, requests: int) -> None:
    """Talks until so many requests are answered. A refusal ends a turn; as with a person, the session goes on.

    Raises:
        RuntimeError: twice as many turns were not enough.
    """
    failed: RuntimeError | None = None
    for prompt in itertools.islice(prompts, 2 * requests):
        try:
            await live.execute(prompt)
        except RuntimeError as error:
            failed = error
        if len(model.requests) >= requests:
            return
    told = f"{len(model.requests)} requests answered, {len(model.too_long)} refused for length, then: {failed}"
    raise RuntimeError(told) from failed


_PROVIDER = {"api_key": "none", "default_model": "gpt-5", "use_streaming": False, "max_retries": 0, "max_tokens": 4_096}


def _call(call: Mapping[str, Any]) -> Item:
    name = call["id"]
    # The tool finds the recorded result by the id. A loop does not give it the id, so an argument does.
    arguments = json.dumps({**call["arguments"], "call": name})
    called = {"id": f"fc_{name}", "call_id": name, "name": call["tool"], "arguments": arguments}
    return {"type": "function_call", "status": "completed", **called}


class _Tool:
    """A tool that returns the recorded results."""

    description = "A tool of the recorded session."
    input_schema: Mapping[str, Any] = {"type": "object", "properties": {"call": {"type": "string"}}}

    def __init__(self, name: str, results: Mapping[str, str]) -> None:
        self.name = name
        self._results = results

    async def execute(self, given: Mapping[str, Any]) -> Any:
        return ToolResult(success=True, output=self._results.get(given["call"], "nothing"))


def _figures(model: Model, compactions: set[int]) -> Figures:
    texts, equal = model.requests, model.equal()
    later = range(1, len(texts))

    def share(numbers: Sequence[int]) -> str:
        return f"{sum(equal[at] for at in numbers) / max(1, sum(len(texts[at]) for at in numbers)):.1%}"

    return {
        "requests": len(texts),
        "refused": len(model.too_long),
        "faults": len(model.faults),
        "compactions": len(compactions),
        "breaks elsewhere": sum(equal[at] < len(texts[at - 1]) for at in later if at not in compactions),
        "equal": share(later),
        "equal between compactions": share([at for at in later if at not in compactions]),
        "largest": model.largest,
        "window": model.window,
    }


def main() -> None:
    """Plays all sessions under all hosts and prints one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts.sessions", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=300, help="of a session (%(default)s)")
    parser.add_argument("--unknown-window", action="store_true", help="nobody says how large the window is")
    given = parser.parse_args()
    wanted = [(session, host) for session in BUDGETS for host in HOSTS]
    cell = partial(play, requests=given.requests, unknown_window=given.unknown_window)
    print(table(run_all(cell, wanted, jobs=2), COLUMNS))


if __name__ == "__main__":
    main()
