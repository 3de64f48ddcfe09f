"""Real conversations with gold answers, fetched and never shipped: which files may be read, and their only reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
"""Where `benchmarks.real.fetch` writes; git ignores it."""
PINS: dict[str, Any] = json.loads(Path(__file__).with_name("pins.json").read_text("utf-8"))
"""For each data set its repository, commit and licence, and the sha256 of the files of each half.

*open* files were looked at while the package was written. *sealed* files are measured and never looked at. Files in
neither half are held back: nothing reads them.
"""


class DataMissingError(FileNotFoundError):
    """A file of a data set is not fetched, or is not of the half that is read."""


def half(name: str, sealed: bool = False) -> dict[str, str]:
    """Returns the paths of one half of a data set, in order, each with its sha256."""
    return dict(PINS[name].get("sealed" if sealed else "open", {}))


def read(name: str, path: str, sealed: bool = False, data: Path = DATA) -> bytes:
    """Returns a file of one half of a data set.

    Raises:
        DataMissingError: the file is not of this half, or is not fetched.
    """
    if path not in half(name, sealed):
        raise DataMissingError(f"{path} of {name} is held back; pins.json names the files that are read")
    file = data / name / path
    if not file.is_file():
        raise DataMissingError(f"{name} is not fetched: run python -m benchmarks.real.fetch{' --sealed' * sealed}")
    return file.read_bytes()
