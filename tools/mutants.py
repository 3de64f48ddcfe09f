"""Changes one thing in a file of the package, runs tests, and puts it back: prints the changes that no test notices.

    .venv/bin/python tools/mutants.py --constants context_summarize/core/plan.py -- tests/unit/core tests/properties

With `--constants` it changes the numbers of the file's constants, to two thirds and to one and a half times; without it
comparisons, conditions and sums. What stands behind `--` goes to pytest. It exits with 1 if a change survives.
"""

import argparse
import ast
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Change = tuple[ast.expr, str]
"""A piece of the source, and what takes its place."""
_COMPARED: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!="}
_COMPARED |= {ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
_SUMS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+"}
_SECONDS = 300
"""A run that takes longer hangs: the change is noticed."""


def constants(tree: ast.Module) -> Iterator[Change]:
    """Yields two changes for each number in an assignment to an upper-case name of the module."""
    for line in tree.body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and line.value and _is_constant(line):
            for one in ast.walk(line.value):
                if isinstance(one, ast.Constant) and type(one.value) in (int, float):
                    yield from ((one, _times(one.value, factor)) for factor in (2 / 3, 1.5))


def _is_constant(line: ast.Assign | ast.AnnAssign) -> bool:
    targets = line.targets if isinstance(line, ast.Assign) else [line.target]
    names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    return bool(names) and all(name.strip("_").isupper() for name in names)


def _times(value: Any, factor: float) -> str:
    """Returns the product; of a whole number the nearest whole number that is another one."""
    if isinstance(value, float):
        return repr(value * factor)
    return repr(round(value * factor) if round(value * factor) != value else value + (1 if factor > 1 else -1))


def operators(tree: ast.Module, source: str) -> Iterator[Change]:
    """Yields one change for each comparison, sum, condition and returned truth value."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Compare) and len(one.ops) == 1:
            yield one, f"{_text(one.left, source)} {_COMPARED[type(one.ops[0])]} {_text(one.comparators[0], source)}"
        elif isinstance(one, ast.BinOp) and type(one.op) in _SUMS:
            yield one, f"({_text(one.left, source)}) {_SUMS[type(one.op)]} ({_text(one.right, source)})"
        elif isinstance(one, ast.If | ast.While | ast.IfExp):
            yield one.test, f"(not ({_text(one.test, source)}))"
        elif isinstance(one, ast.BoolOp):
            yield one, f"({_text(one.values[0], source)})"


def _text(node: ast.expr, source: str) -> str:
    return ast.get_source_segment(source, node) or ""


def changed(source: str, node: ast.expr, text: str) -> str:
    """Returns the source with this text in place of a node."""
    lines = source.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
    whole = b"".join(lines)
    return (whole[:start] + text.encode() + whole[end:]).decode()


def is_noticed(path: Path, source: str, tests: list[str]) -> bool:
    """Returns True if a test fails, cannot be loaded or hangs with this source in place of the file's own."""
    own = path.read_text("utf-8")
    path.write_text(source, "utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
        # Compiled files are told apart by second and size, which two changes may share.
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, capture_output=True, timeout=_SECONDS, env=env, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(own, "utf-8")


def main() -> int:
    """Tries the changes of each file; returns 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--constants", action="store_true")
    parser.add_argument("--only", help="part of the lines to change, such as the name of a constant", default="")
    parser.add_argument("--most", type=int, help="changes of a file, chosen at random", default=1_000)
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, tests = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    if is_noticed(options.files[0], options.files[0].read_text("utf-8"), tests):
        parser.error("the tests fail, or cannot run, without any change; pytest is in .venv after `make lint`")
    tried = survived = 0
    for path in options.files:
        source = path.read_text("utf-8")
        lines, tree = source.splitlines(), ast.parse(source)
        found = [*(constants(tree) if options.constants else operators(tree, source))]
        found = [one for one in found if options.only in lines[one[0].lineno - 1]]
        for node, text in random.Random(1).sample(found, min(options.most, len(found))):
            tried += 1
            if not is_noticed(path, changed(source, node, text), tests):
                survived += 1
                sys.stdout.write(f"{path}:{node.lineno}: {_text(node, source)}  ->  {text}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{survived} of {tried} changes survive\n")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
