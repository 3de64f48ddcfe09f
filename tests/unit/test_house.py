"""The house: what decides never awaits, and values of the core are frozen. import-linter holds the layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import context_summarize

PACKAGE = Path(context_summarize.__file__).parent
PURE = ("core", "notes", "transcript", "messages")
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def _parsed(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yields the name and the code of each file in these folders of the package."""
    for folder in folders:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))


def test_nothing_that_decides_awaits() -> None:
    """No `async` in core, notes, transcript and messages: their promises are properties of plain functions."""
    for name, code in _parsed(*PURE):
        assert [node.lineno for node in ast.walk(code) if isinstance(node, ASYNC)] == [], name


def test_values_of_the_core_are_frozen() -> None:
    """A result cannot be changed behind the back of who holds it."""
    for name, code in _parsed("core"):
        made = [ast.unparse(sign) for node in ast.walk(code) for sign in getattr(node, "decorator_list", ())]
        assert [sign for sign in made if sign.startswith("dataclass") and "frozen=True" not in sign] == [], name


def test_every_file_opens_with_a_sentence() -> None:
    """That tells a stranger whether they are in the right room."""
    for name, code in _parsed("."):
        said = ast.get_docstring(code) or ""
        assert said[:1].isupper() or said.startswith("`"), name
        assert "." in said, name
