"""Which segments a plan summarises: the oldest ones, until its goals are reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from context_summarize.core.draft import Draft, Scale
from context_summarize.core.merging import merged
from context_summarize.core.nodes import Node


def summarised(
    scale: Scale, draft: Draft, keep_recent: int, goals: Sequence[int], *, known_only: bool = False
) -> list[Draft]:
    """For each goal the first draft that reaches it, in one pass over the segments; the last one if none does.

    Args:
        keep_recent: newest rows that stay verbatim.
        goals: tokens of the view, the easiest first.
        known_only: summarise and merge only as far as texts are known.
    """
    found: list[Draft] = []
    last = draft
    for step in _steps(scale, draft, keep_recent, known_only):
        last = step
        size = scale.size(step)
        while len(found) < len(goals) and size <= goals[len(found)]:
            found.append(step)
        if len(found) == len(goals):
            break
    if last is draft or len(found) < len(goals):
        last = _merged(scale, last, known_only)
    found = [_merged(scale, step, known_only) if step is draft else step for step in found]
    return [*found, *([last] * (len(goals) - len(found)))]


def _steps(scale: Scale, draft: Draft, keep_recent: int, known_only: bool) -> Iterator[Draft]:
    """The draft, and after it one more for each segment that is summarised, the oldest first."""
    yield draft
    scene = scale.scene
    nodes, regular, reach = _base(draft)
    limit = scene.history.summarisable(keep_recent)
    count = 0
    for leaf in scene.builder.ahead(regular):
        if leaf.end_group > limit or (known_only and scene.size_of(leaf) is None):
            return
        nodes = (*nodes, leaf)
        count += 1
        if leaf.end_group < reach:
            continue
        grown = replace(draft, nodes=nodes, frontier=leaf.end_group, segments=draft.segments + count)
        draft, count = _merged(scale, grown, known_only), 0
        nodes = draft.nodes
        yield draft


def with_rest(scale: Scale, draft: Draft, keep_recent: int, focus: str | None = None) -> Draft:
    """The draft with what lies between the last closed segment and the newest rows as a rest node."""
    nodes, regular, reach = _base(draft)
    limit = scale.scene.history.summarisable(keep_recent)
    node = scale.scene.builder.rest(regular, limit, focus) if limit > reach else None
    if node is None:
        return draft
    return replace(draft, nodes=(*nodes, node), frontier=limit, segments=draft.segments + 1, level=max(draft.level, 2))


def _base(draft: Draft) -> tuple[tuple[Node, ...], int, int]:
    """(nodes without the rest over rows at the end, where regular segments go on, how far that rest reaches)."""
    last = draft.nodes[-1] if draft.nodes else None
    if last is not None and last.is_rest and not last.children:
        return draft.nodes[:-1], last.first_group, last.end_group
    return draft.nodes, draft.frontier, draft.frontier


def _merged(scale: Scale, draft: Draft, known_only: bool = False) -> Draft:
    nodes = merged(scale, draft.nodes, known_only=known_only)
    return draft if nodes is draft.nodes else replace(draft, nodes=nodes)
