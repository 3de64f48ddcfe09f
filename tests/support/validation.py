"""`amplifier-core validate`, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = """
import atexit, sys, time
from importlib.metadata import entry_points

atexit.register(time.sleep, 0.2)
sys.argv[0] = "amplifier-core"
[command] = entry_points(group="console_scripts", name="amplifier-core")
command.load()()
"""
"""The console script `amplifier-core`, and the moment that its kernel's thread needs before the interpreter ends: as
installed it does not wait, and one run in twenty on a busy machine passes and then dies of a signal."""


def validated(kind: str, package: Path, folder: Path) -> str:
    """What `amplifier-core validate <kind> <package>` says in somebody else's folder; it passes and writes nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "validate", kind, str(package)],
        cwd=folder,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert list(folder.iterdir()) == []
    return done.stdout
