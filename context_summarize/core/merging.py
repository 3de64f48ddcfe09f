"""Merging: when all summaries together exceed their share, the oldest of the lowest level are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, expanded

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

    The oldest complete run of the lowest level is joined first; then incomplete runs, as rest nodes.

    Args:
        size: tokens of nodes.
        may_show: merging ends before a node that may not stand in the view.
    """
    if size(nodes) <= room:
        return nodes
    while size(nodes) > _FREE * room:
        run, index = complete_run(nodes, fan_in), -1
        if run:
            index = run[0].index // fan_in
        else:
            run = incomplete_run(nodes, fan_in)
        if not run:
            return nodes
        made = builder.merge(run, index)
        if not may_show(made):
            return nodes
        before = (node for node in nodes if node.end_group <= made.first_group)
        after = (node for node in nodes if node.first_group >= made.end_group)
        nodes = (*before, made, *after)
    return nodes


def complete_run(nodes: Sequence[Node], fan_in: int) -> list[Node]:
    """The oldest complete run of the lowest level: `fan_in` neighbours of one parent; empty if there is none.

    A run inside a rest node counts if it covers the rest wholly; the rest then goes.
    """
    regular = [inner for node in nodes for inner in expanded(node) if not inner.is_rest]
    rests = [node for node in nodes if node.is_rest]
    for level in sorted({node.level for node in regular}):
        row = [node for node in regular if node.level == level]
        for at, node in enumerate(row):
            run = row[at : at + fan_in]
            wanted = list(range(node.index, node.index + fan_in))
            if node.index % fan_in or [inner.index for inner in run] != wanted:
                continue
            if not any(_overhangs(rest, run) for rest in rests):
                return run
    return []


def incomplete_run(nodes: Sequence[Node], fan_in: int) -> list[Node]:
    """The oldest run of two or more neighbours of one level and one parent, of the lowest level; empty without one.

    What is joined again and again loses something every time, so the lowest level goes first. A rest node over nodes
    of that parent is part of the run: the rest grows, made anew from what it stands for.
    """
    lowest: list[Node] = []
    at = 0
    while at < len(nodes):
        run, end = expanded(nodes[at]), at + 1
        while end < len(nodes) and _are_of_one_parent(more := [*run, *expanded(nodes[end])], fan_in):
            run, end = more, end + 1
        if end - at >= 2 and (not lowest or run[0].level < lowest[0].level):
            lowest = run
        at = end
    return lowest


def _are_of_one_parent(run: Sequence[Node], fan_in: int) -> bool:
    """Whether these are regular nodes of one level that would be merged into one node."""
    parents = {(node.level, node.index // fan_in) for node in run}
    return len(parents) == 1 and not any(node.is_rest for node in run)


def _overhangs(rest: Node, run: Sequence[Node]) -> bool:
    """True when a rest node overlaps the run without lying inside it."""
    first, end = run[0].first_group, run[-1].end_group
    overlaps = rest.first_group < end and rest.end_group > first
    return overlaps and not (rest.first_group >= first and rest.end_group <= end)
