"""Carries the summaries and the cuts of one history over to an edited one: only what was edited is made anew. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from context_summarize.core.finding import found_again, nearest, pins_in, places_of
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import CompactionRecord, Node, Span, leaves_of, regular_frontier, with_children

_AFTER = 4
"""Groups by which the end of the summarised part is found again."""
_LONGEST = 1.5
"""Edited segments that have grown to more than so many times their usual length are cut into more."""

_Instead = Mapping[tuple[int, int], tuple[Node, ...]]
"""Range of an old segment → the segments that take its place."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What an edited history takes over."""

    record: CompactionRecord
    """In terms of the edited history, without a hash; `ahead` holds the segments that must not be cut anew."""
    is_edit: bool
    """True if rows after the edited ones were found again; else the end of the history was replaced or cut off."""
    is_remade: bool
    """True if a node has a new key: its summary is to be made anew."""


def spans_of(history: History, leaves: Iterable[Node]) -> tuple[Span, ...]:
    """What these segments hold."""
    return tuple(history.span(leaf.first_group, leaf.end_group) for leaf in leaves)


def span_after(history: History, frontier: int) -> Span:
    """What stands right after the frontier."""
    return history.span(frontier, min(frontier + _AFTER, len(history.rendered)))


def carry(record: CompactionRecord, history: History, builder: NodeBuilder, fan_in: int) -> Carried | None:
    """What this history takes over from another one, of which a session keeps this record.

    Summaries whose rows are found again stay as they are. Edited rows keep the place of their segment, with a new key;
    so do the merges above it. Where rows are gone without others in their place, a merge gives way to its parts.

    Args:
        builder: of this history.

    Returns:
        None for a record without a session's marks: nothing tells where its rows are.
    """
    marks = record.session
    if marks is None:
        return None
    leaves = list(leaves_of(record.nodes))
    old_starts = [leaf.first_group for leaf in (*leaves, *record.ahead)]
    old_starts.insert(len(leaves), record.frontier_group)
    spans = (*marks.spans[: len(leaves)], marks.after, *marks.spans[len(leaves) :])
    places = found_again(list(zip(old_starts, spans, strict=True)), history)
    end = _frontier(record, leaves, places)
    kept = _kept(leaves, places[: len(leaves)], 0, end)
    parts = _recut(builder, leaves, kept, 0, end)
    instead = {(old.first_group, old.end_group): new for old, new in zip(leaves, parts, strict=True)}
    nodes = tuple(new for node in record.nodes for new in _rebuilt(builder, node, instead))
    frontier = nodes[-1].end_group if nodes else 0
    regular = regular_frontier(nodes, frontier)
    kept_ahead = _kept(record.ahead, places[len(leaves) + 1 :], regular, None) if end is not None else []
    ahead_parts = _recut(builder, record.ahead[: len(kept_ahead)], kept_ahead, regular, None)
    jumps = _jumps([*parts, *ahead_parts], fan_in, max((node.level for node in nodes), default=0))
    moved = _moved(record, history, frontier, list(zip(old_starts, places, strict=True)))
    found = replace(
        moved,
        frontier_group=frontier,
        nodes=tuple(_renumbered(node, jumps, fan_in) for node in nodes),
        notes=record.notes if nodes == record.nodes else None,
        ahead=tuple(_renumbered(leaf, jumps, fan_in) for part in ahead_parts for leaf in part),
    )
    is_edit = (bool(leaves) and end is not None) or _is_edit(kept) or _is_edit([None, *kept_ahead])
    return Carried(found, is_edit, _are_new(nodes, record))


def _are_new(nodes: Iterable[Node], record: CompactionRecord) -> bool:
    """True if one of the nodes does not stand in the record."""
    known = {node.key for node in with_children(record.nodes)}
    return any(node.key not in known for node in nodes)


def _is_edit(kept: Sequence[int | None]) -> bool:
    """True if something stands after what was not found again."""
    return any(place is not None for place in itertools.dropwhile(lambda place: place is not None, kept))


def _frontier(record: CompactionRecord, leaves: Sequence[Node], places: Sequence[int | None]) -> int | None:
    """Where the summarised part ends in the edited history; None if its end is gone."""
    last = places[len(leaves) - 1] if leaves else 0
    if last is not None:
        return last + _size(leaves[-1]) if leaves else 0
    after = places[len(leaves)]
    if after is None and record.ahead and record.ahead[0].first_group == record.frontier_group:
        after = places[len(leaves) + 1]
    return after


def _size(leaf: Node) -> int:
    return leaf.end_group - leaf.first_group


def _kept(leaves: Sequence[Node], places: Sequence[int | None], begin: int, end: int | None) -> list[int | None]:
    """The place of each segment that stays; rows put in between two of them make the earlier one an edited one."""
    kept: list[int | None] = []
    cursor = begin
    for leaf, place in zip(leaves, places, strict=True):
        if place is None or place < cursor or (end is not None and place + _size(leaf) > end):
            kept.append(None)
            continue
        inserted = place > cursor and (not kept or kept[-1] is not None)
        if inserted and kept:
            kept[-1] = None
        kept.append(None if inserted and not kept else place)
        cursor = begin if kept[-1] is None else place + _size(leaf)
    if end is not None and kept and kept[-1] is not None and cursor < end:
        kept[-1] = None
    return kept


def _recut(
    builder: NodeBuilder, leaves: Sequence[Node], kept: Sequence[int | None], begin: int, end: int | None
) -> list[tuple[Node, ...]]:
    """For each old segment those that take its place; without an end, edited ones at the end have none."""
    parts: list[tuple[Node, ...]] = []
    cursor = begin
    while len(parts) < len(leaves):
        at = len(parts)
        place = kept[at]
        if place is not None:
            parts.append((replace(leaves[at], first_group=place, end_group=place + _size(leaves[at])),))
            cursor = place + _size(leaves[at])
            continue
        stop = next((other for other in range(at, len(leaves)) if kept[other] is not None), len(leaves))
        until = kept[stop] if stop < len(leaves) else end
        parts += _edited(builder, leaves[at:stop], cursor, cursor if until is None else until)
        cursor = cursor if until is None else until
    return parts


def _edited(builder: NodeBuilder, old: Sequence[Node], first: int, end: int) -> list[tuple[Node, ...]]:
    """Segments over an edited run: as many as there were, or more if it has grown much longer."""
    lengths = builder.cut_lengths(first, end, old[0].segment_tokens)
    usual, count = old[0].segment_tokens * 4, len(old)
    if sum(lengths) > _LONGEST * usual * count and not old[-1].is_rest:
        count = math.ceil(sum(lengths) / usual)
    made: list[Node] = []
    for number, (start, stop) in enumerate(itertools.pairwise(_even_cuts(lengths, count))):
        like = old[min(number, len(old) - 1)]
        node = builder.remade(like, first + start, first + stop)
        made.append(replace(node, index=like.index + max(0, number - len(old) + 1)) if not like.is_rest else node)
    parts = [(node,) for node in made[: len(old) - 1]] + [tuple(made[len(old) - 1 :])]
    return [*parts, *([()] * (len(old) - len(parts)))]


def _even_cuts(lengths: Sequence[int], count: int) -> list[int]:
    """Where at most so many parts of about the same length begin and end."""
    total, cuts, so_far = sum(lengths), [0], 0
    for at, length in enumerate(lengths, 1):
        so_far += length
        if at == len(lengths) or (len(cuts) < count and so_far * count >= total * len(cuts)):
            cuts.append(at)
    return cuts


def _rebuilt(builder: NodeBuilder, node: Node, instead: _Instead) -> tuple[Node, ...]:
    """What takes the place of a node, once its segments are those of the edited history."""
    if not node.children:
        return instead[node.first_group, node.end_group]
    children = tuple(new for child in node.children for new in _rebuilt(builder, child, instead))
    old, new = [child.key for child in node.children], [child.key for child in children]
    if old == new:
        first, end = children[0].first_group, children[-1].end_group
        return (replace(node, first_group=first, end_group=end, children=children),)
    if len(children) < 2 or set(new) <= set(old):
        return children
    return (builder.rejoined(node, children),)


def _jumps(parts: Iterable[tuple[Node, ...]], fan_in: int, level: int) -> list[tuple[int, int]]:
    """(rendered group, by) from which on segments get higher numbers, because more of them stand before.

    The numbers jump by whole runs of the highest level, so that a node keeps its parent.
    """
    unit = fan_in ** (level + 1)
    return [(part[-1].end_group, unit * math.ceil((len(part) - 1) / unit)) for part in parts if len(part) > 1]


def _renumbered(node: Node, jumps: Sequence[tuple[int, int]], fan_in: int) -> Node:
    if not jumps:
        return node
    by = sum(jump for group, jump in jumps if node.first_group >= group)
    index = node.index if node.is_rest else node.index + by // fan_in**node.level
    return replace(node, index=index, children=tuple(_renumbered(child, jumps, fan_in) for child in node.children))


def _moved(
    record: CompactionRecord, history: History, frontier: int, runs: Sequence[tuple[int, int | None]]
) -> CompactionRecord:
    """The record with the rows that it names where they stand in the edited history."""
    places, by = places_of(history), frontier - record.frontier_group
    shortened = (
        (nearest(places, hash_, ordinal + by), nth, keep, hash_) for ordinal, nth, keep, hash_ in record.shortened
    )
    instructions = (
        (at, nth, start, end, hash_)
        for ordinal, nth, start, end, hash_ in record.instructions
        if (at := nearest(places, hash_, ordinal + by)) is not None
    )
    newest = None
    if record.newest_user is not None:
        shift = next((at - old for old, at in reversed(runs) if at is not None and old <= record.newest_user), 0)
        newest = max((user for user in history.users if user <= record.newest_user + shift), default=None)
    return replace(
        record,
        hash="",
        rendered_groups=len(history.rendered),
        shortened=tuple((at, nth, keep, hash_) for at, nth, keep, hash_ in shortened if at is not None),
        newest_user=newest,
        instructions=tuple(instructions),
        pinned=tuple((at, history.hash_of(at)) for at in pins_in(history, record.pinned, by)),
    )
