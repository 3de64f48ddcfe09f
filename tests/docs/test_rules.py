"""The table of rules in the design names functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| [^|]+ \| ([^|]*`\w+/\w+\.py`[^|]*) \|$", re.M)
_CELL = re.compile(r"((?:`[\w.]+`(?: and )?)+) in `([\w/]+\.py)`")


def _functions(path: Path) -> set[str]:
    """Returns the functions of a file, those of a class behind its name."""
    tree = ast.parse(path.read_text("utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        methods = (node for node in owner.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        found |= {f"{owner.name}.{node.name}" for node in methods}
    return found


def test_each_rule_is_in_the_function_that_the_design_names() -> None:
    section = (ROOT / "docs" / "design.md").read_text("utf-8").split("## Which function holds which rule")[1]
    rows = _ROW.findall(section.split("\n## ")[0])
    assert len(rows) == 10
    for cell in rows:
        named = [(name, file) for names, file in _CELL.findall(cell) for name in re.findall(r"`([\w.]+)`", names)]
        assert named, cell
        for name, file in named:
            assert name in _functions(ROOT / "context_summarize" / file), f"{name} in {file}"
