"""Starts the engine in a process of its own, waits until it answers, asks it, and ends it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.summarisers import Call, DoesNotFit, Summariser

WINDOW = 8_192
"""Tokens of input and answer of one request; SmolLM2 was trained with as many."""
MAX_OUTPUT = 1_024
PYTHON_ENV = "CONTEXT_SUMMARIZE_MODEL_PYTHON"
"""Names another interpreter that has the engine's packages."""
_START_SECONDS, _END_SECONDS, _ANSWER_SECONDS = 120.0, 10.0, 600.0
_VENV = Path(__file__).parents[2] / ".venv-model" / "bin" / "python"
# The environment's proxies are for other machines.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class EngineError(RuntimeError):
    """The engine cannot be started: packages are missing, it has stopped, or it does not answer in time."""


def free_cores() -> int:
    """Cores that are idle by the load of the last minute, 1 or more.

    A thread of the engine that waits for a core holds all its others up: two threads on two busy cores write one
    token a second, one thread writes 25.
    """
    return max(1, round((os.cpu_count() or 1) - os.getloadavg()[0]))


class Local(Summariser):
    """The real model as a summariser: its own latency, at most `MAX_OUTPUT` tokens."""

    address = ""
    """Of the running engine."""

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """Its answer.

        Raises:
            DoesNotFit: the input does not fit its window.
        """
        system = [{"role": "system", "content": instructions}] if instructions else []
        messages = [*system, {"role": "user", "content": shown}]
        body = {"messages": messages, "max_tokens": min(max_output or MAX_OUTPUT, MAX_OUTPUT)}
        try:
            told = await asyncio.to_thread(_post, f"{self.address}/v1/chat/completions", body)
        except urllib.error.HTTPError as error:
            self.calls.append(Call(self.count(shown), 0, refused=True))
            raise DoesNotFit(error.read().decode("utf-8", "replace")[:200]) from error
        self.calls.append(Call(told["usage"]["prompt_tokens"], told["usage"]["completion_tokens"]))
        return str(told["choices"][0]["message"]["content"])


def _post(address: str, body: Any) -> Any:
    head = {"Content-Type": "application/json"}
    with _OPENER.open(
        urllib.request.Request(address, json.dumps(body).encode(), head), timeout=_ANSWER_SECONDS
    ) as said:
        return json.loads(said.read())


@contextmanager
def serving() -> Iterator[type[Local]]:
    """A running engine as a summariser; it ends with the block, and also if this process is killed.

    Raises:
        EngineError: it could not be started; the text holds what it has printed.
    """
    numbers = {"slots": 2, "window": WINDOW, "threads": free_cores()}
    named = os.environ.get(PYTHON_ENV) or str(_VENV if _VENV.exists() else sys.executable)
    command = [named, str(Path(__file__).with_name("engine.py")), json.dumps(numbers)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            line = _first_line(process)
            if not line:
                log.seek(0)
                printed = log.read().decode("utf-8", "replace").strip()[-2_000:]
                raise EngineError(
                    f"the engine of {named} does not start; make model installs it. It printed:\n{printed}"
                )
            address = json.loads(line)["address"]
            _until_healthy(address)
            yield type("Local", (Local,), {"address": address})
        finally:
            _end(process)


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """What the engine tells; nothing if it ends or takes too long."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
    return process.stdout.readline() if ready else b""


def _until_healthy(address: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            _OPENER.open(f"{address}/health", timeout=5).close()
            return
        except OSError as error:  # it does not listen yet, or still loads
            if time.monotonic() > deadline:
                raise EngineError(f"the engine at {address} does not get ready") from error
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The end of its standard input ends it; a signal does where it is busy."""
    try:
        process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
