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

    Args:
        size: tokens of nodes.
        may_show: merging ends before a node that may not stand in the view.
    """
    if size(nodes) <= room:
        return nodes
    while size(nodes) > _FREE * room and (run := next_run(nodes, fan_in)):
        made = builder.merge(run, run[0].index // fan_in if len(run) == fan_in else -1)
        if not may_show(made):
            break
        before = (node for node in nodes if node.end_group <= made.first_group)
        after = (node for node in nodes if node.first_group >= made.end_group)
        nodes = (*before, made, *after)
    return nodes


def next_run(nodes: Sequence[Node], fan_in: int) -> list[Node]:
    """The oldest run of the lowest level that can be joined: a complete one, else an incomplete one; empty without one.

    A complete run is `fan_in` neighbours of one parent, also inside partial nodes that it covers wholly. An incomplete
    run is two nodes or more of one parent; a partial node among them grows, made anew from what it stands for. What is
    joined again and again loses something every time, so the lowest level goes first.
    """
    below: dict[tuple[int, int], list[Node]] = {}
    """The regular nodes of each parent, as (level, number), within partial nodes too."""
    shown: dict[tuple[int, int], list[Node]] = {}
    """The nodes that stand for nodes of one parent alone."""
    for node in nodes:
        inner = expanded(node)
        regular = [one for one in inner if not one.is_partial]
        parents = [(one.level, one.index // fan_in) for one in regular]
        for parent, one in zip(parents, regular, strict=True):
            below.setdefault(parent, []).append(one)
        if len(regular) == len(inner) and len(set(parents)) == 1:
            shown.setdefault(parents[0], []).append(node)
    partials = [node for node in nodes if node.is_partial]
    complete = (run for run in below.values() if len(run) == fan_in)
    runs = [run for run in complete if not any(_overhangs(node, run) for node in partials)]
    if not runs:
        runs = [[one for node in run for one in expanded(node)] for run in shown.values() if len(run) >= 2]
    return min(runs, key=lambda run: (run[0].level, run[0].first_group), default=[])


def _overhangs(partial: Node, run: Sequence[Node]) -> bool:
    """True when a partial node overlaps the run without lying inside it."""
    first, end = run[0].first_group, run[-1].end_group
    overlaps = partial.first_group < end and partial.end_group > first
    return overlaps and not (partial.first_group >= first and partial.end_group <= end)
