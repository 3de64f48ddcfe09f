"""Real conversations with gold answers: fetched, never shipped. Where their files lie, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
"""Where `benchmarks.real.fetch` writes; git ignores it."""


class DataMissingError(FileNotFoundError):
    """A file of a data set is not there, or a chat is held back."""


def read_json(path: Path) -> Any:
    """A file of a data set.

    Raises:
        DataMissingError: the file is not there.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise DataMissingError(f"{path} is missing; run python -m benchmarks.real.fetch") from None
