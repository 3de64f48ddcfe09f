"""Carrying over: runs of groups are found again by what they hold, and only what was edited gets a new key."""

from __future__ import annotations

from context_summarize.core.carrying import Carried, carry, span_after, spans_of
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import CompactionRecord, Node, SessionMarks, leaves_of, merge_node
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import user

FAN_IN = 3
SIZES = (64, 32)


def told(number: int, length: int = 60) -> JsonRow:
    """A row of about `length` bytes."""
    return user(f"{number:04} " * (length // 5))


def history_of(rows: list[JsonRow]) -> History:
    history = History()
    for raw in rows:
        history.add(analyse(normalise(raw)))
    return history


def builder_of(history: History) -> NodeBuilder:
    return NodeBuilder(history, "segment", "merge", None)


def compacted(rows: list[JsonRow], segments: int, *, merges: int = 0) -> CompactionRecord:
    """The record of a session whose first segments are summarised, the oldest of them merged."""
    history = history_of(rows)
    builder = builder_of(history)
    builder.start(*SIZES, first_group=0, first_index=0)
    builder.advance()
    leaves = builder.leaves[:segments]
    nodes: list[Node] = []
    for at in range(merges):
        run = leaves[at * FAN_IN : (at + 1) * FAN_IN]
        nodes.append(merge_node(run, template_hash="merge", summary_tokens=SIZES[1], index=at))
    nodes += leaves[merges * FAN_IN :]
    frontier, ahead = nodes[-1].end_group, builder.leaves[segments:]
    marks = SessionMarks("", spans_of(history, [*leaves, *ahead]), span_after(history, frontier))
    return CompactionRecord(
        "", frontier, len(history.rendered), *SIZES, tuple(nodes), ahead=tuple(ahead), session=marks
    )


def carried(record: CompactionRecord, rows: list[JsonRow]) -> Carried:
    history = history_of(rows)
    found = carry(record, history, builder_of(history), FAN_IN)
    assert found is not None
    check(found.record, history)
    return found


def check(record: CompactionRecord, history: History) -> None:
    """Nodes and what is ahead tile the history; regular nodes of one level are numbered upwards; keys are right."""
    at = 0
    for leaf in [*leaves_of(record.nodes), *record.ahead]:
        assert leaf.first_group == at < leaf.end_group <= len(history.rendered)
        at = leaf.end_group
        assert leaf.key == builder_of(history).remade(leaf, leaf.first_group, leaf.end_group).key
    for level in range(3):
        numbers = [node.index for node in record.nodes if node.level == level]
        assert numbers == sorted(set(numbers))


def keys(record: CompactionRecord) -> list[str]:
    return [leaf.key for leaf in [*leaves_of(record.nodes), *record.ahead]]


ROWS = [told(at) for at in range(60)]


def test_a_merge_gives_way_to_its_parts_where_rows_are_gone() -> None:
    """Nothing of it is made anew: the parts are known."""
    record = compacted(ROWS, 8, merges=2)
    first, gone, last = record.nodes[0].children
    found = carried(record, [*ROWS[: gone.first_group], *ROWS[gone.end_group :]])
    assert not found.is_remade
    assert [node.key for node in found.record.nodes] == [first.key, last.key, *(n.key for n in record.nodes[1:])]


def test_a_long_stretch_put_in_is_cut_and_what_follows_keeps_its_parent() -> None:
    """Later numbers jump by whole runs of the highest level."""
    record = compacted(ROWS, 8)
    found = carried(record, [*ROWS[:2], *(told(9_000 + at) for at in range(40)), *ROWS[2:]]).record
    later = [node for node in found.nodes if node.key in {old.key for old in record.nodes}]
    assert len(later) == 7
    old = {node.key: node.index for node in record.nodes}
    jumps = {node.index - old[node.key] for node in later}
    assert len(jumps) == 1
    assert jumps.pop() % FAN_IN == 0


def test_segments_that_say_the_same_follow_their_neighbours() -> None:
    """A loop that polls: an edited one is not taken for one of its equals further on."""
    rows = [*(told(1) for _ in range(30)), told(2), *(told(1) for _ in range(30))]
    record = compacted(rows, 8)
    found = carried(record, [*rows[:8], told(9_999), *rows[9:]]).record
    assert sum(old != new for old, new in zip(keys(record), keys(found), strict=True)) == 1
