"""Mutants of a Python module: one small change each, in what runs; texts, docstrings and annotations are left out."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.USub: ast.UAdd,
}
"""Operators, each with the one that takes its place."""
_TRUTH = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.NamedExpr)
"""A condition of such a kind is negated; the others hold an operator that is changed."""
_NOT_RUN = frozenset({"annotation", "returns", "decorator_list"})
"""Fields that say what something is."""

Edit = Callable[[ast.AST], None]
"""Changes one node in place."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module."""

    line: int
    change: str
    """The changed part before and after."""
    function: str | None
    """Qualified name of the outermost function whose body is changed; None at the level of the module or a class."""
    text: str
    """The line as it stands."""
    tree: ast.Module
    """The whole changed module."""

    @property
    def order(self) -> str:
        """By what a sample is drawn: a hash of what is changed, so that a sample stays the same while its lines do."""
        return hashlib.sha256(f"{self.function} {self.text} {self.change}".encode()).hexdigest()


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree, lines = ast.parse(source), source.splitlines()
    number = {id(node): at for at, node in enumerate(ast.walk(tree))}
    found = []
    for node, function in _running(tree, "", None):
        for edit in _edits(node):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[number[id(node)]]
            before = _short(ast.unparse(target))
            edit(target)
            ast.fix_missing_locations(changed)
            line = node.ifs[0].lineno if isinstance(node, ast.comprehension) else node.lineno  # type: ignore[attr-defined]
            change = f"{before} → {_short(ast.unparse(target))}"
            found.append(Mutant(line, change, function, lines[line - 1].strip(), changed))
    return sorted(found, key=lambda mutant: mutant.line)


def sampled(mutants: Iterable[Mutant], most: int) -> list[Mutant]:
    """At most this many of them, in the order of their lines; always the same ones."""
    return sorted(sorted(mutants, key=lambda mutant: mutant.order)[:most], key=lambda mutant: mutant.line)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:50]} … {text[-27:]}"


def _running(node: ast.AST, scope: str, function: str | None) -> Iterator[tuple[ast.AST, str | None]]:
    """The nodes that run, each with the outermost function in whose body it stands."""
    for field, value in ast.iter_fields(node):
        if field in _NOT_RUN:
            continue
        inner, outer = scope, function
        if isinstance(node, ast.ClassDef) and function is None:
            inner = f"{scope}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and field == "body":
            outer = function or f"{scope}{node.name}"
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text_or_type(node, child):
                yield child, outer
                yield from _running(child, inner, outer)


def _is_text_or_type(parent: ast.AST, node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="logger")))):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None)):
            return True
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id in ("isinstance", "cast")
        and isinstance(node, ast.BinOp)
    )


def _edits(node: ast.AST) -> Iterator[Edit]:
    match node:
        case ast.Compare(ops=ops):
            for at, operator in enumerate(ops):
                if type(operator) in SWAPS:
                    yield lambda it, at=at: it.ops.__setitem__(at, SWAPS[type(it.ops[at])]())  # type: ignore[misc]
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() | ast.UnaryOp(op=ast.USub()) if type(node.op) in SWAPS:
            yield lambda it: setattr(it, "op", SWAPS[type(it.op)]())  # type: ignore[attr-defined]
        case ast.UnaryOp(op=ast.Not()):
            yield _negated("operand")
        case ast.Constant(value=bool() | int() | float()):
            yield _other_number
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if isinstance(test, _TRUTH):
            yield _negated("test")
        case ast.comprehension(ifs=[ast.Name() | ast.Attribute() | ast.Call(), *_]):
            yield lambda it: it.ifs.__setitem__(0, _not(it.ifs[0]))  # type: ignore[attr-defined]
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield lambda it: setattr(it, "value", ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield lambda it: setattr(it, "value", ast.Constant(None))
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield lambda it: setattr(it, "targets", [ast.Name("_", ast.Store())])
        case ast.Break():
            yield lambda it: setattr(it, "__class__", ast.Continue)
        case ast.Continue():
            yield lambda it: setattr(it, "__class__", ast.Break)


def _not(value: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), value)


def _negated(field: str) -> Edit:
    return lambda it: setattr(it, field, _not(getattr(it, field)))


def _other_number(node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, bool | int | float)
    node.value = not node.value if isinstance(node.value, bool) else node.value + 1
