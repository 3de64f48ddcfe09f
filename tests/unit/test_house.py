"""The house: what decides never awaits, and values of the core are frozen. import-linter holds the layers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import context_summarize

PACKAGE = Path(context_summarize.__file__).parent
PURE = ("core/", "notes/", "transcript/", "messages/")
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


@pytest.fixture(scope="module")
def code() -> dict[str, ast.Module]:
    """The files of the package by their path within it."""
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}


def test_nothing_that_decides_awaits(code: dict[str, ast.Module]) -> None:
    """No `async` in core, notes, transcript and messages: their promises are properties of plain functions."""
    pure = [name for name in code if name.startswith(PURE)]
    assert pure
    for name in pure:
        assert [node.lineno for node in ast.walk(code[name]) if isinstance(node, ASYNC)] == [], name


def test_values_of_the_core_are_frozen(code: dict[str, ast.Module]) -> None:
    """A result cannot be changed behind the back of who holds it."""
    for name in (name for name in code if name.startswith("core/")):
        signs = [ast.unparse(sign) for node in ast.walk(code[name]) for sign in getattr(node, "decorator_list", ())]
        assert [sign for sign in signs if sign.startswith("dataclass") and "frozen=True" not in sign] == [], name


def test_every_file_opens_with_a_sentence(code: dict[str, ast.Module]) -> None:
    """That tells a stranger whether they are in the right room."""
    for name, module in code.items():
        said = ast.get_docstring(module) or ""
        assert said[:1].isupper() or said.startswith("`"), name
        assert "." in said, name
