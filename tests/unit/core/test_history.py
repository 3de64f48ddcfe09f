"""The history: rows counted once, numbers that hosts' filtering does not move, segments, node addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_summarize.background import finished
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import assistant, call, calls, hook, result, tool_session, user
from context_summarize.tokens.measure import ROW_OVERHEAD, measure

SYSTEM = {"role": "system", "content": "be kind"}


def count(text: str) -> int:
    """A token is a word."""
    return len(text.split())


class Counter:
    """Counts words, and how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return count(text)


def history_of(rows: list[JsonRow], *, preserve_system: bool = True) -> History:
    history = History()
    for raw in rows:
        history.add(analyse(normalise(raw), preserve_system=preserve_system))
    return history


def saved(rows: list[JsonRow]) -> list[JsonRow]:
    """Rows as a host saves them: no system, developer or hook rows, no thinking, no None values; through JSON."""
    kept: list[JsonRow] = []
    for row in rows:
        metadata = row.get("metadata") or {}
        if row["role"] in ("system", "developer") or metadata.get("source") == "hook":
            continue
        content = row.get("content")
        if isinstance(content, list):
            content = [block for block in content if block.get("type") != "thinking"]
        kept.append({k: v for k, v in {**row, "content": content}.items() if v is not None and k != "thinking_block"})
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


MIXED: list[JsonRow] = [
    SYSTEM,
    user("one"),
    hook("note"),
    call("a", text="two"),
    hook("between"),
    result("a", "three"),
    hook("after"),
    {"role": "developer", "content": "rule"},
    assistant("four"),
    user("five"),
]
"""History rows 0 … 9; rendered groups: [1], [3, 6), [8], [9]."""


class TestCounting:
    def test_a_row_is_its_words_and_its_wrapping(self) -> None:
        """Text, and three tokens that wrap a message."""
        assert measure(user("one two three"), count) == 3 + ROW_OVERHEAD
        assert measure({"role": "user", "content": None}, count) == ROW_OVERHEAD

    def test_a_call_that_is_stored_twice_counts_once(self) -> None:
        """Block and `tool_calls` are the same call."""
        both = call("a", "bash", command="ls")
        block = {"role": "assistant", "content": both["content"]}
        assert measure(both, count) == measure(block, count)

    def test_an_image_counts_by_its_size_and_never_by_its_base64(self) -> None:
        """Unknown data costs a stated constant, however long it is."""
        short, long = (
            {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "AAAA" * n}}]}
            for n in (5, 5_000)
        )
        assert measure(short, count) == measure(long, count)

    def test_rows_are_counted_once(self) -> None:
        """Whoever asks again finds the figure."""
        history, counter = history_of(MIXED), Counter()
        assert set(history.tokens) == {-1}
        history.count_rows(0, 5, counter)
        asked = len(counter.asked)
        assert [tokens < 0 for tokens in history.tokens] == [False] * 5 + [True] * 5
        history.count_rows(0, 5, counter)
        assert len(counter.asked) == asked
        history.count_rows(0, len(MIXED), counter)
        assert list(history.tokens) == [measure(row, count) for row in MIXED]

    def test_a_row_that_comes_with_its_size_is_not_counted(self) -> None:
        """Rows taken over from an earlier history."""
        history, counter = History(), Counter()
        history.add(analyse(normalise(user("one two"))), 77)
        history.count_rows(0, 1, counter)
        assert (history.tokens[0], counter.asked) == (77, [])


class TestNumbers:
    def test_groups_are_the_smallest_runs_that_may_not_be_cut(self) -> None:
        """Call, result and what stands between are one; the others stand alone."""
        history = history_of(MIXED)
        assert [(group.start, group.end) for group in history.groups] == [
            (0, 1),
            (1, 2),
            (2, 3),
            (3, 6),
            (6, 7),
            (7, 8),
            (8, 9),
            (9, 10),
        ]
        assert [history.rendered_group(at).start for at in range(4)] == [1, 3, 8, 9]
        assert list(history.users) == [0, 3]
        assert list(history.pins) == [0, 7]

    def test_without_preserve_system_host_system_rows_are_no_pins(self) -> None:
        """They may be folded too."""
        assert list(history_of(MIXED, preserve_system=False).pins) == []

    def test_message_range_counts_rendered_rows_from_one(self) -> None:
        """System, developer and hook rows have no number."""
        history = history_of(MIXED)
        assert history.message_range(0, 1) == (1, 1)
        assert history.message_range(0, 2) == (1, 3)
        assert history.message_range(1, 3) == (2, 4)
        assert history.message_range(0, 4) == (1, 5)

    def test_message_range_does_not_count_rows_that_are_still_open(self) -> None:
        """An open call may still grow."""
        history = history_of([*MIXED, call("b")])
        assert history.message_range(3, 4) == (5, 5)

    @pytest.mark.parametrize(
        ("keep", "groups"),
        [(0, 3), (1, 3), (2, 2), (3, 2), (4, 2), (5, 1), (6, 1), (7, 1), (8, 1), (9, 0), (10, 0), (99, 0)],
    )
    def test_keep_recent_counts_every_row_and_snaps_outwards_to_groups(self, keep: int, groups: int) -> None:
        """The group [3, 6) is kept whole when its last row is kept; hook rows count too."""
        assert history_of(MIXED).summarisable(keep) == groups

    def test_the_newest_group_is_never_folded(self) -> None:
        """keep_recent 0 keeps it all the same."""
        assert history_of([user("one")]).summarisable(0) == 0
        assert history_of([]).summarisable(0) == 0
        assert history_of([user("one"), hook("note")]).summarisable(0) == 0

    def test_while_a_call_is_open_it_is_the_newest_group(self) -> None:
        """All closed groups may go then."""
        history = history_of([*MIXED, call("b"), hook("between")])
        assert history.summarisable(0) == 4
        assert history.summarisable(2) == 4
        assert history.summarisable(3) == 3
        assert [(group.start, group.end) for group in history.open_groups()] == [(10, 12)]

    def test_folding_drops_the_rows_between_as_far_as_keep_recent_allows(self) -> None:
        """Rows that are not rendered and follow the last folded one go with it."""
        history = history_of(MIXED)
        assert history.row_after(0, 99) == 0
        assert history.row_after(1, 99) == 3
        assert history.row_after(1, 2) == 2
        assert history.row_after(2, 99) == 8
        assert history.row_after(2, 7) == 7
        assert history.row_after(2, 0) == 6, "never into the folded group"
        assert history.row_after(4, 99) == 10

    def test_folding_all_that_is_closed_stops_at_the_open_call(self) -> None:
        """The open run stands verbatim."""
        history = history_of([*MIXED, hook("tail"), call("b"), hook("between")])
        assert history.row_after(4, 99) == 11
        assert history.row_after(4, 10) == 10

    def test_rows_and_groups_find_each_other(self) -> None:
        """By history row and by number."""
        history = history_of([*MIXED, call("b")])
        group = history.group_of(4)
        assert group is not None
        assert (group.start, group.end) == (3, 6)
        assert history.group_of(10) is None, "an open run is no closed group"
        assert history.group_position(3) == 3
        assert history.group_position(4) == 4, "the first group that starts at or after it"
        assert [history.row_of(at) for at in range(5)] == [1, 3, 8, 9, 11]
        assert History().group_of(0) is None


class TestPortableNames:
    def test_a_row_is_found_again_after_a_host_has_saved_the_rows(self) -> None:
        """Rendered group, and rendered row within it: hook and system rows do not move it."""
        history = history_of(MIXED)
        other = history_of(saved(MIXED))
        named = [history.portable(index, 10 + index) for index in (1, 3, 5, 8)]
        assert [name[:3] for name in named] == [(0, 0, 11), (1, 0, 13), (1, 1, 15), (2, 0, 18)]
        assert other.from_portable(named) == {0: 11, 1: 13, 2: 15, 3: 18}
        assert history.from_portable(named) == {1: 11, 3: 13, 5: 15, 8: 18}

    def test_what_is_not_there_is_left_out(self) -> None:
        """Rows before the first rendered one, beyond the end, or beyond their group."""
        history = history_of(MIXED)
        assert history.portable(0, 5) == (-1, 0, 5, "")
        digest = history.portable(9, 5)[3]
        assert history.from_portable([(-1, 0, 5, digest), (4, 0, 5, digest), (3, 0, 5, digest)]) == {9: 5}

    def test_another_row_in_its_place_is_left_out(self) -> None:
        """A fork shares what lies before the frontier, not the rows behind it."""
        history = history_of(MIXED)
        other = history_of([*MIXED[:-2], user("something else"), *MIXED[-1:]])
        named = [history.portable(index, 5) for index in range(len(MIXED)) if history.rows[index].rendered]
        kept = other.from_portable(named)
        assert kept
        assert all(other.rows[index].raw == MIXED[index] for index in kept)

    def test_a_hook_row_between_groups_names_no_other_row(self) -> None:
        """Its shortening is forgotten."""
        history = history_of(MIXED)
        assert history.from_portable([history.portable(2, 5), history.portable(6, 5)]) == {}

    def test_a_hook_row_inside_a_group_names_no_other_row(self) -> None:
        """A shortened hook row may not shorten the result of a resumed session."""
        history = history_of(MIXED)
        assert history.from_portable([history.portable(4, 5)]) == {}


class TestRunningHashes:
    def test_there_is_one_hash_for_each_rendered_group(self) -> None:
        """Each covers all before it."""
        hashes = finished(history_of(MIXED).running_hashes("seed", 4))
        assert len(set(hashes)) == 4
        assert finished(history_of(MIXED[:4] + MIXED[5:6]).running_hashes("seed", 2)) == hashes[:2]

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param([row for row in MIXED if row["role"] not in ("system", "developer")], id="no system rows"),
            pytest.param([row for row in MIXED if "metadata" not in row], id="no hook rows"),
            pytest.param(
                [{**row, "metadata": {**(row.get("metadata") or {}), "x": 1}} for row in MIXED], id="metadata"
            ),
            pytest.param([{**row, "name": None} if row["role"] == "user" else row for row in MIXED], id="None values"),
            pytest.param(saved(MIXED), id="saved and read"),
            pytest.param(
                [
                    {**r, "content": [{"type": "text", "text": r["content"]}]} if r["role"] == "user" else r
                    for r in MIXED
                ],
                id="text as a block",
            ),
        ],
    )
    def test_what_hosts_drop_or_add_does_not_count(self, changed: list[JsonRow]) -> None:
        """A saved and read history is the same conversation."""
        assert finished(history_of(changed).running_hashes("s", 4)) == finished(
            history_of(MIXED).running_hashes("s", 4)
        )

    def test_thinking_does_not_count(self) -> None:
        """Saved transcripts have none."""
        thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
        spoken = {"role": "assistant", "content": [thought, {"type": "text", "text": "yes"}], "thinking_block": thought}
        with_it, without = history_of([user("a"), spoken]), history_of([user("a"), assistant("yes")])
        assert finished(with_it.running_hashes("s", 2)) == finished(without.running_hashes("s", 2))

    @pytest.mark.parametrize(
        "other",
        [
            [user("one!"), *MIXED[2:]],
            [assistant("one"), *MIXED[2:]],
            [user("one"), call("a", text="two", flag=1), *MIXED[4:]],
            [user("one"), call("a", text="two"), result("a", "3"), *MIXED[6:]],
        ],
    )
    def test_what_was_said_counts(self, other: list[JsonRow]) -> None:
        """Text, role, arguments and results."""
        [*_, last] = finished(history_of(MIXED).running_hashes("s", 4))
        [*_, changed] = finished(history_of(other).running_hashes("s", 4))
        assert changed != last

    def test_the_seed_counts(self) -> None:
        """Records of other settings are not found."""
        history = history_of(MIXED)
        assert not set(finished(history.running_hashes("a", 4))) & set(finished(history.running_hashes("b", 4)))

    def test_nothing_has_no_hash(self) -> None:
        """An empty run."""
        assert finished(history_of(MIXED).running_hashes("a", 0)) == []


def built(history: History, *sizes: int, first_group: int = 0, first_index: int = 0) -> NodeBuilder:
    """The history cut into segments of these sizes."""
    builder = NodeBuilder(history, "s", "m", None)
    builder.start(*sizes, first_group=first_group, first_index=first_index)
    cut(builder)
    return builder


def cut(builder: NodeBuilder) -> None:
    assert all(step is None for step in builder.advance())


class TestSegments:
    def test_nothing_is_cut_before_the_sizes_are_known(self) -> None:
        """The first view whose budget is known fixes them."""
        builder = NodeBuilder(history_of(tool_session(10)), "s", "m", None)
        cut(builder)
        assert (builder.segment_sizes, builder.segments, builder.leaves) == (None, [], [])

    def test_cutting_as_rows_come_is_cutting_all_at_once(self) -> None:
        """Rule 13: appending rows never changes a closed segment."""
        rows, grown = tool_session(12), History()
        once, builder = built(history_of(rows), 128, 32), built(grown, 128, 32)
        for raw in rows:
            before = list(builder.leaves)
            grown.add(analyse(normalise(raw)))
            cut(builder)
            assert builder.leaves[: len(before)] == before
        assert (builder.segments, builder.leaves) == (once.segments, once.leaves)
        assert len(once.segments) > 3
        assert [segment.index for segment in once.segments] == list(range(len(once.segments)))

    def test_other_sizes_go_on_where_they_are_told_to(self) -> None:
        """Sizes derived anew do not move what is summarised already."""
        builder = built(history_of(tool_session(12)), 128, 32, first_group=6, first_index=4)
        assert (builder.segments[0].first_group, builder.segments[0].index) == (6, 4)
        assert builder.segment_sizes == (128, 32)

    def test_it_is_cut_a_group_at_a_time(self) -> None:
        """So that the event loop has its turn between the groups of a long history."""
        history = history_of(tool_session(12))
        builder = NodeBuilder(history, "s", "m", None)
        builder.start(128, 32, first_group=0, first_index=0)
        assert sum(1 for _ in builder.advance()) >= len(history.rendered)


class Cut:
    """A history cut into segments, with its nodes."""

    def __init__(self, rows: list[JsonRow], segment_tokens: int = 128, **changes: Any) -> None:
        self.history = history_of(rows)
        given: dict[str, Any] = {"segment_hash": "s", "merge_hash": "m", "redact": None, **changes}
        self.builder = NodeBuilder(self.history, **given)
        self.builder.start(segment_tokens, 48, first_group=0, first_index=0)
        cut(self.builder)
        self.leaves = self.builder.leaves


class TestNodes:
    def test_each_segment_has_a_leaf_of_its_own(self) -> None:
        """Segments of different text have different keys."""
        leaves = Cut(tool_session(8)).leaves
        assert len({leaf.key for leaf in leaves}) == len(leaves) > 2

    def test_the_same_run_with_another_length_is_another_node(self) -> None:
        """summary_tokens are part of the key."""
        first = Cut(tool_session(8)).leaves[0]
        again = built(history_of(tool_session(8)), 128, 60).leaves[0]
        assert (again.first_group, again.end_group) == (first.first_group, first.end_group)
        assert again.key != first.key

    @pytest.mark.parametrize("changes", [{"segment_hash": "other"}, {"redact": str.upper}])
    def test_template_and_redaction_are_in_the_key(self, changes: dict[str, Any]) -> None:
        """What the summariser is shown, and by which words it is asked."""
        assert Cut(tool_session(8), **changes).leaves[0].key != Cut(tool_session(8)).leaves[0].key

    def test_frame_metadata_hooks_and_system_rows_are_not(self) -> None:
        """A saved session finds its summaries."""
        rows = [
            more
            for row in tool_session(8)
            for more in ({**row, "metadata": {"at": "12:00"}, "extra": None}, hook("note"), SYSTEM)
        ]
        assert [leaf.key for leaf in Cut(rows).leaves] == [leaf.key for leaf in Cut(tool_session(8)).leaves]

    def test_a_rest_needs_sizes_and_more_than_it_would_write(self) -> None:
        """No summary where it would not be smaller."""
        cut = Cut([*tool_session(4), user("short"), assistant("too")])
        groups = len(cut.history.rendered)
        assert cut.builder.rest(groups - 2, groups) is None
        assert cut.builder.rest(2, 2) is None
        unknown = NodeBuilder(history_of(tool_session(4)), "s", "m", None)
        assert unknown.rest(0, 4) is None
        node = cut.builder.rest(0, 6)
        assert node is not None
        assert (node.is_rest, node.level, node.first_group, node.end_group, node.children) == (True, 0, 0, 6, ())

    def test_focus_is_part_of_the_key_of_a_rest(self) -> None:
        """It shapes only that summary."""
        cut = Cut(tool_session(8))
        plain, focused = cut.builder.rest(0, 8), cut.builder.rest(0, 8, "dates")
        assert plain is not None
        assert focused is not None
        assert plain.key != focused.key
        assert focused.focus == "dates"

    def test_a_merge_stands_for_its_children(self) -> None:
        """Range from the first to the last, one level up, keyed by its children."""
        cut = Cut(tool_session(12))
        node = cut.builder.merge(cut.leaves[:3], 0)
        assert (node.level, node.index, node.first_group) == (1, 0, 0)
        assert node.end_group == cut.leaves[2].end_group
        assert node.children == tuple(cut.leaves[:3])
        assert node.key != cut.builder.merge(cut.leaves[:2], 0).key

    def test_the_source_of_a_leaf_is_given_in_runs_that_are_its_groups(self) -> None:
        """So that pieces are cut at group boundaries."""
        rows = [user("ask " * 30), calls(("a", "x", {}), ("b", "y", {})), hook("h"), result("a"), result("b")]
        cut = Cut([*rows, *tool_session(6)])
        leaf = cut.leaves[0]
        source = finished(cut.builder.source(leaf))
        runs = cut.builder.runs(leaf, source)
        assert [row for run in runs for row in run] == list(source)
        assert len(runs) == leaf.end_group - leaf.first_group
        assert [row.role for row in runs[1]] == ["assistant", "tool", "tool"]
