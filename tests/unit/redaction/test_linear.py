"""`make bench-linear` measures every pattern that runs over content: none is left out."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import context_summarize
from benchmarks.linear import compiled_in, measured, normalisations, patterns
from benchmarks.linear_lists import IN_FUNCTIONS, LISTED, MATCHED, NO_CONTENT

PACKAGE = Path(context_summarize.__path__[0])
FORMATS = ("redaction.formats", "redaction.halves")
"""Their patterns are listed one by one."""
CHECKS = ("stores.address", "stores.sqlite_file", "history_file.session", "replay.report")
"""Modules whose functions use patterns on addresses, names of files and pages that were made here."""
OTHERS = ("recall.context_tool", "recall.reader", "redaction.own", *CHECKS)
"""`recall.reader` matches a short query; the patterns of `redaction.own` are the user's, and are stopped."""


def _modules() -> list[str]:
    found = pkgutil.walk_packages(context_summarize.__path__, "context_summarize.")
    return [one.name.removeprefix("context_summarize.") for one in found if not one.ispkg]


def test_every_module_with_a_compiled_pattern_is_listed():
    imported = {name for name in _modules() if not name.startswith("_")}
    listed = {id(pattern) for name in (*LISTED, *NO_CONTENT, *FORMATS) for _, pattern in compiled_in(name)}
    missing = [f"{name}.{at}" for name in imported for at, pattern in compiled_in(name) if id(pattern) not in listed]

    assert missing == []
    assert [name for name in (*LISTED, *NO_CONTENT) if not any(True for _ in compiled_in(name))] == []


def test_every_function_with_a_pattern_of_its_own_is_known():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and _uses_re(function):
                found.add(".".join(path.relative_to(PACKAGE).with_suffix("").parts))

    assert found - {*IN_FUNCTIONS, *FORMATS, *OTHERS} == set()


def _uses_re(function: ast.AST) -> bool:
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(
        isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id == "re" for call in calls
    )


def test_what_is_only_matched_is_there():
    names = {piece.name for piece in patterns()}

    assert MATCHED - names == set()
    assert len(names) > 150


def test_each_piece_of_work_runs():
    for piece in (*normalisations(), *patterns()):
        growth = measured(piece, "a", "!")
        assert growth.name == piece.name
        assert importlib.import_module("benchmarks.linear_lists").LONG >= piece.most > 0
