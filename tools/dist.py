"""Builds sdist and wheel, checks their metadata, and replays a recording with the wheel on every Python that it finds.

Run by `make dist`; needs the packages `build` and `twine`. What passes is left in dist/.
"""

# ruff: noqa: T201 - what it prints is its output

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
RECORDING = ROOT / "examples" / "airline-desk.jsonl"
ROWS = 300
"""Rows that are replayed: enough for some compactions in a window of 12,000 tokens."""
VERSIONS = ("3.11", "3.12", "3.13")


def run(*command: str | Path, cwd: Path = ROOT, home: Path | None = None) -> str:
    """What a command prints; its errors go where ours go.

    Args:
        home: the user's folder, as the command sees it; None = as we do.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    # Nothing of the environment that we run in may reach a Python that is tried.
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV", "PYENV_"))}
    if home is not None:
        kept["HOME"] = str(home)
    return subprocess.run(command, cwd=cwd, env=kept, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def build() -> Path:
    """The wheel, built from the sdist as an installer would; dist/ holds both and nothing else."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST))
    made = sorted(DIST.iterdir())
    print(run(sys.executable, "-m", "twine", "check", "--strict", *made), end="")
    [wheel] = DIST.glob("*.whl")
    return wheel


def interpreters() -> Iterator[tuple[str, str]]:
    """(version, command) of each Python that is there: on the path, else among pyenv's."""
    for version in VERSIONS:
        on_path = shutil.which(f"python{version}")
        for command in (*([on_path] if on_path else []), *_of_pyenv(version)):
            if _version(command) == version:
                yield version, command
                break


def _of_pyenv(version: str) -> list[str]:
    if shutil.which("pyenv") is None:
        return []
    root = Path(run("pyenv", "root").strip())
    return [str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"), reverse=True)]


def _version(command: str) -> str | None:
    """`3.12`; None where the command is a shim for a Python that is not switched on."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([command, "-c", asked], capture_output=True, encoding="utf-8", check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def try_wheel(wheel: Path, python: str) -> str:
    """What a replay by the installed wheel saw, in a fresh environment, with an empty home, outside the repository.

    Raises:
        RuntimeError: no compaction ran, although the recording is larger than the window.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run(python, "-m", "venv", folder / "venv")
        scripts, home = folder / "venv" / "bin", folder / "home"
        home.mkdir()
        run(scripts / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", "--quiet", "install", wheel)
        with RECORDING.open(encoding="utf-8") as lines:
            (folder / "short.jsonl").write_text("".join(islice(lines, ROWS)), "utf-8")
        command = (scripts / "context-summarize", "replay", "short.jsonl", "--window", "12000", "--max-output", "1000")
        seen = json.loads(run(*command, "--json", cwd=folder, home=home))  # a check that fails ends it with 1
        if not seen["boundaries"]:
            raise RuntimeError(f"{ROWS} rows caused no compaction in a window of 12,000 tokens; expected some")
        return f"{seen['messages']} messages, {seen['requests']} requests, {len(seen['boundaries'])} compactions, ok"


def main() -> int:
    """Build, check, try; 1 where any of it fails, or no Python could be tried."""
    try:
        wheel = build()
        found = dict(interpreters())
        for version, python in found.items():
            print(f"Python {version}: {try_wheel(wheel, python)}", flush=True)
    except subprocess.CalledProcessError as error:
        print(f"FAILED: {' '.join(map(str, error.cmd))}\n{error.stdout}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    for version in VERSIONS:
        if version not in found:
            print(f"Python {version}: not here, not tried")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
