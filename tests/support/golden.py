"""Exact wordings in one file: what users read, compared as a whole, and rewritten by one command."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "golden"
REWRITE = "CONTEXT_SUMMARIZE_GOLDEN"
"""Environment variable: `write` makes today's wordings the expected ones."""


def check(name: str, said: Mapping[str, str]) -> None:
    """Compare what was said in each case with `tests/golden/<name>.txt`.

    The file has a line for each case and its text below, indented.
    """
    path: Path = FOLDER / f"{name}.txt"
    told = "\n".join(f"{case}\n{textwrap.indent(text.rstrip(), '    ')}\n" for case, text in said.items())
    if os.environ.get(REWRITE) == "write":
        path.write_text(told, "utf-8")
    assert path.read_text("utf-8") == told, f"changed on purpose? {REWRITE}=write rewrites {path.relative_to(ROOT)}"
