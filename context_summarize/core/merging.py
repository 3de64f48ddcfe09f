"""Merging: when all summaries together exceed their share, the oldest of the lowest level are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node

_FREE = 0.9
"""Merging goes on until a tenth of the room is free."""


def merged(
    nodes: tuple[Node, ...],
    room: float,
    fan_in: int,
    builder: NodeBuilder,
    size: Callable[[Sequence[Node]], int],
    may_show: Callable[[Node], bool],
) -> tuple[Node, ...]:
    """The nodes within so many tokens, as far as merging goes; if no run is left, the room is exceeded.

    Args:
        size: tokens of nodes.
        may_show: merging ends before a node that may not stand in the view.
    """
    if size(nodes) <= room:
        return nodes
    while size(nodes) > _FREE * room and (run := next_run(nodes, fan_in)):
        made = builder.merge(run)
        if not may_show(made):
            break
        before = [node for node in nodes if node.end_group <= made.first_group]
        nodes = (*before, made, *(node for node in nodes if node.first_group >= made.end_group))
    return nodes


def next_run(nodes: Sequence[Node], fan_in: int) -> list[Node]:
    """The oldest `fan_in` neighbours of the lowest level that has as many, else all of the lowest; empty without two.

    A merge of fewer grows: it is made anew of what it was joined from, and of the nodes after it. What is joined again
    and again loses something every time, so that only whole ones are joined further, and the lowest level goes first.
    """
    runs, at = list[list[Node]](), len(nodes)
    for level, newest_first in groupby(reversed(nodes), key=lambda node: node.level):
        run = [*newest_first][::-1]
        at -= len(run)
        older = nodes[at - 1] if at else None
        if older is not None and older.level == level + 1 and len(older.children) < fan_in:
            run = [*older.children, *run]
        if len(run) > 1:
            runs.append(run[:fan_in])
    return next((run for run in runs if len(run) == fan_in), runs[0] if runs else [])
