"""The acceptance suite stands at public faces: it imports nothing private, and reaches into nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import context_summarize
from tests.support.acceptance import PATHS
from tests.support.paths import ROOT

PUBLIC = {
    "benchmarks.clock",  # virtual time, which knows nothing of the package
    "context_summarize",
    *(f"context_summarize.{name}" for name in ("cli", "errors", "events", "stores", "testing")),
}
_IMPORT = re.compile(r"(?:from|import) (context_summarize[\w.]*|benchmarks[\w.]*)")
"""Also in a script that a test runs."""
_NAMES = re.compile(r"from context_summarize import (.+)")
_PATCH = re.compile(r"setattr\(\s*(?:\"context_summarize|context_summarize\b)")
LOOKS_INSIDE = ROOT / "tests" / "support" / "inside.py"
"""The one helper that reads what has no public face."""
OF_HOOKS = "_system_prompt_factory"
"""The one name with an underscore that hosts' hooks read and set."""


def suite() -> set[Path]:
    """The files of the suite, and the helpers that they import, directly or not."""
    found: set[Path] = set()
    new = {*PATHS, ROOT / "tests" / "conftest.py"}
    while new:
        found |= new
        new = {helper for path in new for helper in helpers(path)} - found - {LOOKS_INSIDE}
    return found


def helpers(path: Path) -> Iterator[Path]:
    for module, names in re.findall(r"(?:from|import) (tests[\w.]*)(?: import (\w+))?", path.read_text("utf-8")):
        for dotted in (module, f"{module}.{names}"):
            file = ROOT / f"{dotted.replace('.', '/')}.py"
            if file.is_file():
                yield file


def reaches(path: Path) -> Iterator[str]:
    """The attributes in this file that are nobody else's affair."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Attribute) or node.attr.startswith("__") or node.attr == OF_HOOKS:
            continue
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if (node.attr.startswith("_") and not is_own) or node.attr == "conversation":
            yield node.attr


def test_nothing_private_is_imported_or_patched() -> None:
    for path in suite():
        text = path.read_text("utf-8")
        assert {name for name in _IMPORT.findall(text) if name not in PUBLIC} == set(), path
        named = {name for names in _NAMES.findall(text) for name in re.findall(r"\w+", names)}
        assert named <= {*context_summarize.__all__}, path
        assert _PATCH.findall(text) == [], path


def test_nobody_reaches_for_what_is_private() -> None:
    assert {path.name: found for path in suite() if (found := set(reaches(path)))} == {}
