"""Merging: when all summaries together exceed their share, the oldest of the lowest level are joined."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize.core.draft import Scale
from context_summarize.core.nodes import Node, expanded

_FREE = 0.9
"""Merging goes on until a tenth of the share is free."""


def merged(scale: Scale, nodes: tuple[Node, ...], *, known_only: bool = False) -> tuple[Node, ...]:
    """The nodes within their share of the budget, as far as merging goes; if no run is left, the share yields.

    The oldest complete run of the lowest level is joined first; then incomplete runs, as rest nodes.

    Args:
        known_only: no node is made whose text is not known yet.
    """
    limits, builder = scale.scene.limits, scale.scene.builder
    share = limits.share * limits.base - (limits.notes_room if nodes else 0)
    if scale.sum_of(nodes) <= share:
        return nodes
    while scale.sum_of(nodes) > _FREE * share:
        run = complete_run(nodes, limits.fan_in)
        if run is not None:
            made = builder.merge(run, run[0].index // limits.fan_in)
        else:
            run = incomplete_run(nodes, limits.fan_in)
            if run is None:
                return nodes
            made = builder.merge(run, -1)
        joined = replaced(nodes, made)
        if known_only and any(scale.scene.size_of(node) is None for node in joined):
            return nodes
        nodes = joined
    return nodes


def complete_run(nodes: Sequence[Node], fan_in: int) -> list[Node] | None:
    """The oldest complete run of the lowest level: `fan_in` neighbours of one parent; None if there is none.

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
    return None


def incomplete_run(nodes: Sequence[Node], fan_in: int) -> list[Node] | None:
    """The oldest run of two or more neighbours of one level and one parent, of the lowest level; None without one.

    What is joined again and again loses something every time, so the lowest level goes first. A rest node over nodes
    of that parent is part of the run: the rest grows, made anew from what it stands for.
    """
    lowest: list[Node] = []
    at = 0
    while at < len(nodes):
        run, end = expanded(nodes[at]), at + 1
        while end < len(nodes) and _are_of_one_parent(run, more := expanded(nodes[end]), fan_in):
            run, end = [*run, *more], end + 1
        if end - at >= 2 and (not lowest or run[0].level < lowest[0].level):
            lowest = run
        at = end
    return lowest or None


def replaced(nodes: tuple[Node, ...], made: Node) -> tuple[Node, ...]:
    """The nodes with those that `made` covers replaced by it."""
    before = (node for node in nodes if node.end_group <= made.first_group)
    after = (node for node in nodes if node.first_group >= made.end_group)
    return (*before, made, *after)


def _are_of_one_parent(run: Sequence[Node], more: Sequence[Node], fan_in: int) -> bool:
    """Whether these regular nodes and those are of one level, and would be merged into one node."""
    nodes = (*run, *more)
    parents = {(node.level, node.index // fan_in) for node in nodes}
    return len(parents) == 1 and not any(node.is_rest for node in nodes)


def _overhangs(rest: Node, run: Sequence[Node]) -> bool:
    """True when a rest node overlaps the run without lying inside it."""
    first, end = run[0].first_group, run[-1].end_group
    overlaps = rest.first_group < end and rest.end_group > first
    return overlaps and not (rest.first_group >= first and rest.end_group <= end)
