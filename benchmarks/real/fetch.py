"""Fetches the public data sets: git clones of their repositories at pinned commits, every file's hash checked.

python -m benchmarks.real.fetch                 clones from the network
python -m benchmarks.real.fetch --from DIR      reads git directories in DIR, up to three folders down
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.real.data import DATA

PINS = Path(__file__).parent / "pins.json"
"""A data set's repository, commit, licence, and the sha256 of each file that is read."""


class FetchError(Exception):
    """A data set cannot be had, or is not what was pinned."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set in a git repository."""

    name: str
    repository: str
    commit: str
    licence: str
    files: Mapping[str, str]
    """Path in the repository to sha256 of the content."""


def sources(path: Path = PINS) -> list[Source]:
    """All pinned data sets."""
    return [Source(name=name, **entry) for name, entry in json.loads(path.read_text("utf-8")).items()]


def fetch(source: Source, into: Path, given: Path | None = None) -> int:
    """Write a data set's files into `into/<its name>`; how many were missing there.

    Args:
        given: a folder with git directories that are there already; without it, the repository is cloned.

    Raises:
        FetchError: the repository cannot be cloned or is not in `given`, it lacks a file, or a hash differs.
    """
    folder = into / source.name
    missing = [path for path, pinned in source.files.items() if _hash(folder / path) != pinned]
    if not missing:
        return 0
    if given is not None:
        _copy(source, _git_directory(source, given), missing, folder)
        return len(missing)
    with tempfile.TemporaryDirectory() as made:
        _clone(source, Path(made))
        _copy(source, Path(made), missing, folder)
    return len(missing)


def _git_directory(source: Source, given: Path) -> Path:
    """The git directory that holds the pinned commit, whatever its folder is called."""
    for depth in ("", "*/", "*/*/", "*/*/*/"):
        for head in sorted(given.glob(f"{depth}HEAD")):
            if _git(head.parent, "cat-file", "-e", f"{source.commit}^{{commit}}").returncode == 0:
                return head.parent
    raise FetchError(f"no git directory in {given} holds commit {source.commit} of {source.repository}")


def _clone(source: Source, into: Path) -> None:
    # Only the files that are read are downloaded: a blobless clone gets each when it is shown.
    done = _git(None, "clone", "--quiet", "--bare", "--filter=blob:none", source.repository, str(into))
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git says nothing"]
        raise FetchError(
            f"cannot clone {source.repository}: {said[-1]}. Without a network, clone it elsewhere, "
            "copy the folder here and name it with --from"
        )


def _copy(source: Source, git: Path, paths: Sequence[str], folder: Path) -> None:
    for path in paths:
        shown = _git(git, "show", f"{source.commit}:{path}")
        if shown.returncode:
            raise FetchError(
                f"{source.repository} lacks {path} at {source.commit[:12]} (a copy may leave out large files)"
            )
        found = hashlib.sha256(shown.stdout).hexdigest()
        if found != source.files[path]:
            raise FetchError(f"{path} of {source.name} has the hash {found}, expected {source.files[path]}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        part.write_bytes(shown.stdout)
        part.replace(target)


def _git(directory: Path | None, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    at = [] if directory is None else [f"--git-dir={directory}"]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}  # a question nobody answers would hang
    try:
        return subprocess.run(["git", *at, *arguments], capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        raise FetchError("git is not installed; install it, or copy the data from another machine") from None


def _hash(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch all data sets, or those that are named."""
    known = sources()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.fetch", description=__doc__.splitlines()[0])
    parser.add_argument("--from", type=Path, dest="given", metavar="DIR", help="a folder with git directories")
    parser.add_argument(
        "--into", type=Path, default=DATA, metavar="DIR", help="where the files go (default: %(default)s)"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(one.name for one in known)}")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {one.name for one in known}:
        parser.error(f"no data set is called {', '.join(sorted(unknown))}")
    failed = 0
    for source in known:
        if options.names and source.name not in options.names:
            continue
        try:
            count = fetch(source, options.into, options.given)
        except FetchError as error:
            print(f"{source.name}: {error}", file=sys.stderr)
            failed += 1
        else:
            print(f"{source.name}: {len(source.files)} files, {count} of them new (licence: {source.licence})")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
