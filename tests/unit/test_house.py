"""The house: what decides never awaits, and values of the core are frozen. import-linter holds the layers."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import context_summarize

PACKAGE = Path(context_summarize.__file__).parent
PURE = ("core", "notes", "transcript", "messages")
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
BUILDERS = {"_Draft"}
"""Dataclasses of the core that may change: a plan under construction."""


def _files(folders: tuple[str, ...]) -> list[Path]:
    return sorted(path for folder in folders for path in (PACKAGE / folder).rglob("*.py"))


def _named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_nothing_that_decides_awaits() -> None:
    """No `async` in core, notes, transcript and messages: their promises are properties of plain functions."""
    for path in _files(PURE):
        found = [node.lineno for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ASYNC)]
        assert found == [], _named(path)


def test_values_of_the_core_are_frozen() -> None:
    """A result cannot be changed behind the back of who holds it."""
    for path in _files(("core",)):
        module = importlib.import_module(f"context_summarize.core.{path.stem}")
        for name, value in vars(module).items():
            made: Any = getattr(value, "__dataclass_params__", None)
            is_ours = made and getattr(value, "__module__", "") == module.__name__
            assert not is_ours or name in BUILDERS or made.frozen, _named(path)


def test_every_file_opens_with_a_sentence() -> None:
    """That tells a stranger whether they are in the right room."""
    for path in PACKAGE.rglob("*.py"):
        said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        assert said[:1].isupper() or said.startswith("`"), _named(path)
        assert "." in said, _named(path)
