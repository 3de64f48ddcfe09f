"""The tree of errors as it is drawn, against the classes that there are."""

from __future__ import annotations

import importlib
import pkgutil
import re

import context_summarize
from context_summarize import errors
from context_summarize.errors import ContextSummarizeError


def _found(base: type[ContextSummarizeError]) -> set[type[ContextSummarizeError]]:
    below = base.__subclasses__()
    return set(below).union(*map(_found, below))


def test_the_drawn_tree_names_every_error_with_its_other_base() -> None:
    """Whoever catches them reads that tree: each error of the package stands in it and is defined beside it."""
    for module in pkgutil.walk_packages(context_summarize.__path__, "context_summarize."):
        importlib.import_module(module.name)
    ours = {each for each in _found(ContextSummarizeError) if each.__module__.startswith("context_summarize.")}
    assert {each.__module__ for each in ours} == {errors.__name__}
    drawn = dict(re.findall(r"[├└]── (\w+)(?: \((\w+)\))?  ", ContextSummarizeError.__doc__ or ""))
    assert drawn == {each.__name__: "ValueError" if issubclass(each, ValueError) else "" for each in ours}
    assert all(each.__bases__[0] is ContextSummarizeError for each in ours)  # the tree is drawn with one level
