"""Fetches the public data sets from git clones at pinned commits, and checks the hash of every file."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.real import DATA, PINS, half


class FetchError(Exception):
    """A data set cannot be had, or is not what was pinned."""


def fetch(name: str, into: Path, given: Path | None = None, sealed: bool = False) -> int:
    """Writes a data set's files into `into/name`, and returns how many were missing there.

    Args:
        given: a folder with git directories that are there already; without it, the repository is cloned.
        sealed: the sealed files too.

    Raises:
        FetchError: the repository cannot be cloned or is not in `given`, it lacks a file, or a hash differs.
    """
    pinned, folder = PINS[name], into / name
    files = half(name) | (half(name, sealed=True) if sealed else {})
    missing = [path for path, expected in files.items() if _hash_of(folder / path) != expected]
    if not missing:
        return 0
    with tempfile.TemporaryDirectory() as made:
        git = _given(pinned, given) if given is not None else _clone(pinned, Path(made))
        for path in missing:
            shown = _git(git, "show", f"{pinned['commit']}:{path}")
            found = hashlib.sha256(shown.stdout).hexdigest()
            if shown.returncode or found != files[path]:
                raise FetchError(f"{pinned['repository']} lacks {path}, or holds another one (sha256 {found})")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(shown.stdout)
    return len(missing)


def _given(pinned: Mapping[str, Any], given: Path) -> Path:
    """Returns the git directory that holds the pinned commit, whatever its name."""
    for depth in ("", "*/", "*/*/", "*/*/*/"):
        for head in sorted(given.glob(f"{depth}HEAD")):
            if _git(head.parent, "cat-file", "-e", f"{pinned['commit']}^{{commit}}").returncode == 0:
                return head.parent
    raise FetchError(f"no git directory in {given} holds commit {pinned['commit']} of {pinned['repository']}")


def _clone(pinned: Mapping[str, Any], into: Path) -> Path:
    # A blobless clone downloads a file when it is shown, so only the files that are read.
    done = _git(None, "clone", "--quiet", "--bare", "--filter=blob:none", pinned["repository"], str(into))
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise FetchError(f"cannot clone {pinned['repository']}; clone it elsewhere and name it with --from: {said}")
    return into


def _git(directory: Path | None, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    at = [] if directory is None else [f"--git-dir={directory}"]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}  # a question nobody answers would hang
    return subprocess.run(["git", *at, *arguments], capture_output=True, env=environment, check=False)


def _hash_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def main() -> int:
    """Fetches all data sets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.fetch", description=__doc__)
    told = "read git directories in DIR, up to three folders down; without it, they are cloned from the network"
    parser.add_argument("--from", type=Path, dest="given", metavar="DIR", help=told)
    parser.add_argument("--sealed", action="store_true", help="write the sealed files too")
    given = parser.parse_args()
    for name in PINS:
        try:
            count = fetch(name, DATA, given.given, given.sealed)
        except FetchError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name}: {count} new files ({PINS[name]['licence']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
