"""The house: what decides never awaits, and values of the core are frozen. import-linter holds the layers."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

import context_summarize
from tests.support.paths import ROOT

PACKAGE = Path(context_summarize.__file__).parent
PURE = ("core/", "notes/", "transcript/", "messages/")
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_opens_with_a_sentence_and_what_decides_awaits_nothing(path: Path) -> None:
    """The sentence tells a stranger whether they are in the right room. Promises of plain functions are properties."""
    name, module = str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))
    said = ast.get_docstring(module) or ""
    assert said[:1].isupper() or said.startswith("`")
    assert "." in said
    if name.startswith(PURE):
        assert [node.lineno for node in ast.walk(module) if isinstance(node, ASYNC)] == []
    if name.startswith("core/"):  # nobody changes a result behind the back of who holds it
        signs = [ast.unparse(sign) for node in ast.walk(module) for sign in getattr(node, "decorator_list", ())]
        assert [sign for sign in signs if sign.startswith("dataclass") and "frozen=True" not in sign] == []


def test_the_tests_that_the_makefile_names_are_there() -> None:
    told = subprocess.run(["make", "--dry-run", "test-long", "test-lowest"], cwd=ROOT, capture_output=True, text=True)
    named = set(re.findall(r"(?:tests|benchmarks)/[\w./]+", told.stdout))
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
