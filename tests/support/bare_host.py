"""Commands and scripts in fresh processes, one of them a real session with a loop of two lines and this module."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SCRIPT = '''
import asyncio, json, os, sys, types
from pathlib import Path
from amplifier_core import AmplifierSession
from amplifier_core.module_sources import ModuleNotFoundError

context = json.loads("""CONTEXT""")

class Resolver:
    def resolve(self, module_id, source_hint=None, profile_hint=None):
        if source_hint is None:
            raise ModuleNotFoundError(module_id)
        return types.SimpleNamespace(resolve=lambda: Path(source_hint.removeprefix("file://")))

class Loop:
    async def execute(self, prompt, context, **parts):
        await context.add_message({"role": "user", "content": prompt})
        return str(await context.get_messages_for_request())

class Provider:
    name = "none"

def install(module_id, point, part, **name):
    async def mount(coordinator, config):
        await coordinator.mount(point, part, **name)

    sys.modules["amplifier_module_" + module_id] = types.SimpleNamespace(mount=mount)

install("loop", "orchestrator", Loop())
install("provider", "providers", Provider(), name="none")

async def main():
    parts = {"orchestrator": {"module": "loop"}, "context": {"module": "context-summarize", **context}}
    session = AmplifierSession({"session": parts, "providers": [{"module": "provider"}]})
    await session.coordinator.mount("module-source-resolver", Resolver())
    async with session:
        print(await session.execute("hello"))
    import context_summarize
    print(context_summarize.__file__)
    sys.stdout.flush()
    os._exit(0)  # the kernel's own threads can crash an interpreter that ends

asyncio.run(main())
'''


def bare_host(**context: Any) -> str:
    """The script, with these keys of the context module: its `source`, its `config`. It prints a view and a path."""
    return _SCRIPT.replace("CONTEXT", json.dumps(context))


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that ends well, with little of our environment; its home and working folder are empty and stay so."""
    empty = folder / "empty"
    empty.mkdir()
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "TMPDIR")}
    environment |= {"HOME": str(empty), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, cwd=empty, env=environment, capture_output=True, encoding="utf-8", timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(empty.iterdir()) == []
    return done


def run_python(script: str, folder: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own, where warnings are errors."""
    (folder / "script.py").write_text(textwrap.dedent(script), "utf-8")
    return run([python, "-W", "error", str(folder / "script.py")], folder)
