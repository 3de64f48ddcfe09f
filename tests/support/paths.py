"""Where the repository is, for tests in any folder."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def corpus(name: str) -> list[str]:
    """The lines of a file of cases."""
    return (ROOT / "tests" / "corpora" / name).read_text("utf-8").splitlines()
