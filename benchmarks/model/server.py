"""Starts the engine in a process of its own, waits until it answers, asks it, and ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from benchmarks.summarisers import Call, DoesNotFit, Summariser

WINDOW = 8_192
"""Tokens of input and answer of one request: as many as SmolLM2 was trained with."""
MAX_OUTPUT = 1_024
PYTHON_ENV = "CONTEXT_SUMMARIZE_MODEL_PYTHON"
"""Names another interpreter that has the engine's packages."""
_START_SECONDS, _ANSWER_SECONDS = 120.0, 600.0
_VENV = Path(__file__).parents[2] / ".venv-model" / "bin" / "python"


class EngineError(RuntimeError):
    """The engine does not start: packages are missing, it has stopped, or it does not answer in time."""


def free_cores() -> int:
    """Returns how many cores are idle by the load of the last minute, at least 1.

    A thread of the engine that waits for a core holds up all others: two threads on two busy cores write one token a
    second, one thread writes 25.
    """
    return max(1, round((os.cpu_count() or 1) - os.getloadavg()[0]))


class Local(Summariser):
    """The real model as a summariser: its own latency, at most `MAX_OUTPUT` tokens."""

    address = ""
    """Of the running engine."""

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """Returns the model's answer.

        Raises:
            DoesNotFit: the input does not fit the window.
        """
        system = [{"role": "system", "content": instructions}] if instructions else []
        messages = [*system, {"role": "user", "content": shown}]
        body = {"messages": messages, "max_tokens": min(max_output or MAX_OUTPUT, MAX_OUTPUT)}
        # The environment's proxies are for other machines.
        async with httpx.AsyncClient(trust_env=False, timeout=_ANSWER_SECONDS) as client:
            said = await client.post(f"{self.address}/v1/chat/completions", json=body)
        if said.is_error:
            self.calls.append(Call(self.count(shown), 0, refused=True))
            raise DoesNotFit(said.text[:200])
        told = said.json()
        self.calls.append(Call(told["usage"]["prompt_tokens"], told["usage"]["completion_tokens"]))
        return str(told["choices"][0]["message"]["content"])


@contextmanager
def serving() -> Iterator[type[Local]]:
    """Runs an engine and yields it as a summariser. It ends with the block, and also if this process is killed.

    Raises:
        EngineError: the engine does not start; the text holds what it printed.
    """
    numbers = {"slots": 2, "window": WINDOW, "threads": free_cores()}
    named = os.environ.get(PYTHON_ENV) or str(_VENV if _VENV.exists() else sys.executable)
    command = [named, str(Path(__file__).with_name("engine.py")), json.dumps(numbers)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            told = process.stdout.readline() if process.stdout else b""
            if not told:
                log.seek(0)
                printed = log.read().decode("utf-8", "replace").strip()[-2_000:]
                raise EngineError(
                    f"the engine of {named} does not start; make model installs it. It printed:\n{printed}"
                )
            address = json.loads(told)["address"]
            _until_healthy(address)
            yield type("Local", (Local,), {"address": address})
        finally:
            process.kill()


def _until_healthy(address: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):  # it does not listen yet
            if httpx.get(f"{address}/health", trust_env=False).is_success:
                return
        time.sleep(0.1)
    raise EngineError(f"the engine at {address} does not get ready")
