"""The planner alone, without an event loop: what is folded, merged, shortened, and how far it goes to fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from context_summarize.core.frames import show_node, show_one_line
from context_summarize.core.history import History
from context_summarize.core.limits import Limits
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.notes_log import NotesAsk, NotesLog
from context_summarize.core.plan import CompactionRequest, Plan, Reason, next_plan, plan
from context_summarize.core.shown_groups import ShownGroups
from context_summarize.core.view import View
from context_summarize.core.view_size import PlanInput
from context_summarize.core.view_state import ShownNode, ShownNotes, ViewState
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import assistant, call, calls, hook, result, user

SUMMARY_WORDS = 40
FRAME_WORDS = 10


def count(text: str) -> int:
    """A token is a word; words of four bytes make cutting and counting agree."""
    return len(text.split())


def words(tokens: int, word: str = "abc") -> str:
    return " ".join([word] * tokens)


def talk(turns: int, tokens: int = 97) -> list[JsonRow]:
    """Turns of two rows, each of `tokens` words, which makes 100 tokens a row."""
    return [row for at in range(turns) for row in (user(words(tokens, f"u{at:02}")), assistant(words(tokens, "yes")))]


def looked_up(call_id: str, tokens: int) -> list[JsonRow]:
    return [call(call_id), result(call_id, words(tokens))]


def frame(**values: str) -> str:
    return f"{words(FRAME_WORDS, 'frame')} {values['text']}"


class Scene:
    """A history, its view state, and everything that makes plans and carries them out."""

    def __init__(self, rows: list[JsonRow], *, segment_tokens: int = 380, factory: bool = False, **limits: Any) -> None:
        self.history = History()
        self.builder = NodeBuilder(self.history, "segment", "merge", None)
        self.builder.start(segment_tokens, SUMMARY_WORDS, first_group=0, first_index=0)
        self.groups = ShownGroups(self.history, count, hides_system=factory)
        self.log = NotesLog(self.builder, None, count, tools={}, signs=(), heading="")
        self.pins: tuple[int, ...] = ()
        self.add(*rows)
        self.state = ViewState()
        self.known: dict[Node, ShownNode] = {}
        """By node, not by key: two segments of equal text share a key."""
        self.system_tokens = 0
        given: dict[str, Any] = {
            "own_budget": 4_000,
            "keep_recent": 4,
            "threshold": 0.7,
            "target": 0.3,
            "share": 0.25,
            "fan_in": 3,
            "shorten_above": None,
        }
        self.given = {**given, **limits}

    def add(self, *rows: JsonRow) -> None:
        for raw in rows:
            self.history.add(analyse(normalise(raw)))
        self.builder.advance()
        self.groups.advance()

    def limits(self, **changes: Any) -> Limits:
        given = {**self.given, **changes}
        room = given.pop("own_budget") - self.system_tokens
        return Limits(**{"system_tokens": self.system_tokens, "view_room": room, "base": room, **given})

    def plan(
        self,
        reason: Reason = "threshold",
        focus: str | None = None,
        *,
        easy: bool = False,
        **changes: Any,
    ) -> Plan:
        request = CompactionRequest(reason, focus, known_only=reason == "cold_cache", easy=easy)
        return plan(self.planned(**changes), request)

    def planned(self, **changes: Any) -> PlanInput:
        return PlanInput(
            builder=self.builder,
            groups=self.groups,
            view=self.state,
            limits=self.limits(**changes),
            pins=self.pins,
            size_of=lambda node: self.known[node].tokens if node in self.known else None,
        )

    def show(self, node: Node) -> ShownNode:
        text = words(SUMMARY_WORDS, f"sum{node.level}")
        return show_node(self.history, node, Summary(node.key, node.level, text, 0, 0), frame, count)

    def settled(self, reason: Reason = "threshold", focus: str | None = None, **changes: Any) -> Plan:
        """Plan until nothing is missing, as a compaction does."""
        while (plan := self.plan(reason, focus, **changes)).missing:
            self.known.update((node, self.show(node)) for node in plan.missing)
        return plan

    def cross(self, reason: Reason = "threshold", focus: str | None = None, **changes: Any) -> Plan:
        """Make the compaction."""
        plan = self.settled(reason, focus, **changes)
        self.state = self.after(plan)
        return plan

    def after(self, plan: Plan) -> ViewState:
        shown = [self.known[node] for node in plan.view.nodes]
        lines = [show_one_line(self.history, item, count) for item in shown[: plan.view.lines]]
        return replace(plan.view, shown=(*lines, *shown[plan.view.lines :]), notes=self.notes(plan, shown))

    def notes(self, plan: Plan, shown: list[ShownNode]) -> ShownNotes | None:
        """As a compaction does."""
        kept, room = self.state.notes, self.given.get("notes_room", 0)
        if not plan.notes_room:
            return None
        if kept is not None and self.state.keeps_notes(plan.view.nodes, room):
            return replace(kept, age=kept.age + 1)
        return self.log.write(shown, NotesAsk(plan.view.frontier, plan.view.frontier_row, plan.notes_room, 4_000))

    def view(self, state: ViewState | None = None) -> View:
        return View(state or self.state, self.groups)

    def ends(self) -> list[int]:
        return [leaf.end_group for leaf in self.builder.leaves]


class TestFolding:
    def test_oldest_segments_are_folded_until_the_target_is_reached(self) -> None:
        """Not one more than that takes."""
        scene = Scene(talk(20))
        plan = scene.settled(share=1.0)
        assert plan.tokens_after <= 1_200 < plan.tokens_before
        assert plan.view.frontier in scene.ends()
        folded = scene.ends().index(plan.view.frontier)
        assert plan.segments == folded + 1 == len(plan.view.nodes)
        one_less = scene.settled(share=1.0, target=(plan.tokens_after + 1) / 4_000)
        assert one_less.view.frontier == plan.view.frontier
        assert scene.settled(share=1.0, target=0.5).view.frontier < plan.view.frontier
        assert (plan.level, plan.view.lines, plan.view.shortened, plan.fits) == (1, 0, {}, True)

    def test_the_system_prompt_counts_against_the_target(self) -> None:
        """The target is a share of the whole request."""
        scene = Scene(talk(20))
        without = scene.settled(share=1.0, target=0.35).view.frontier
        scene.system_tokens = 400
        plan = scene.settled(share=1.0, target=0.35)
        assert plan.view.frontier > without
        assert plan.tokens_after + 400 <= 0.35 * 4_000

    @pytest.mark.parametrize("keep", [0, 1, 7, 20, 33, 40])
    def test_never_into_the_newest_rows(self, keep: int) -> None:
        """keep_recent rows stand verbatim, whatever the target."""
        scene = Scene(talk(20), keep_recent=keep, target=0.01, own_budget=6_000)
        plan = scene.settled()
        assert plan.view.frontier_row <= 40 - max(keep, 1)
        assert plan.view.frontier == max([end for end in scene.ends() if end <= 40 - max(keep, 1)], default=0)

    def test_a_tool_group_at_the_edge_of_keep_recent_stays_whole(self) -> None:
        """Snapped outwards to groups."""
        scene = Scene([*talk(6), *looked_up("a", 300), user(words(20))], keep_recent=2)
        assert scene.settled("manual").view.frontier_row <= 12

    def test_hook_rows_after_the_last_folded_row_go_with_it(self) -> None:
        """Folding drops them, as far as keep_recent allows."""
        rows = talk(6)
        scene = Scene([*rows[:-2], hook("n1"), hook("n2"), *rows[-2:]], keep_recent=2)
        assert scene.settled("manual").view.frontier_row == 12
        assert scene.settled("manual", keep_recent=3).view.frontier_row == 11

    def test_an_empty_history_gives_an_empty_plan(self) -> None:
        """compact() may be called at any time."""
        plan = Scene([]).settled("manual")
        assert (plan.view.nodes, plan.view.frontier, plan.view.frontier_row, plan.view.newest_user) == ((), 0, 0, None)

    def test_the_estimate_of_an_unknown_summary_is_more_than_it_takes(self) -> None:
        """The first plan is careful, the last exact."""
        scene = Scene(talk(20))
        first = scene.plan(share=1.0)
        assert first.missing
        assert set(first.missing) <= set(first.view.nodes)
        assert scene.settled(share=1.0).tokens_after < first.tokens_after

    def test_the_newest_user_message_is_chosen_anew(self) -> None:
        """It is pinned when it lies before the frontier."""
        scene = Scene([*talk(3), *(row for at in range(9) for row in looked_up(f"c{at}", 200))])
        plan = scene.settled()
        assert plan.view.newest_user == 4
        assert plan.view.frontier > 4


class TestRest:
    def test_compact_folds_down_to_keep_recent_with_a_rest(self) -> None:
        """The run after the last closed segment becomes a rest node."""
        scene = Scene(talk(10), keep_recent=2)
        plan = scene.settled("manual", share=1.0)
        assert plan.view.frontier == 18
        *regular, rest = plan.view.nodes
        assert (rest.is_rest, rest.children) == (True, ())
        assert (rest.first_group, rest.end_group) == (regular[-1].end_group, 18)
        assert all(not node.is_rest for node in regular)
        assert (plan.level, plan.segments) == (2, len(plan.view.nodes))

    def test_a_rest_stays_until_regular_segments_cover_it_wholly(self) -> None:
        """The frontier never moves back."""
        scene = Scene(talk(3), keep_recent=1, share=1.0)
        first = scene.cross("manual")
        rest = first.view.nodes[-1]
        assert rest.is_rest
        assert rest.first_group == 4, "one segment is closed, and cannot reach the end of the rest"
        frontiers = [first.view.frontier]
        seen = []
        for _ in range(8):
            scene.add(*talk(1))
            plan = scene.cross("threshold", target=0.01)
            frontiers.append(plan.view.frontier)
            seen.append(rest in plan.view.nodes)
            covered = [node for node in plan.view.nodes if node.first_group >= 4 and node != rest]
            assert (rest in plan.view.nodes) == (not covered)
            edges = [0, *(node.end_group for node in plan.view.nodes)]
            assert [node.first_group for node in plan.view.nodes] == edges[:-1]
        assert frontiers == sorted(frontiers)
        assert seen[0]
        assert not seen[-1]

    def test_a_second_compact_lets_the_rest_grow(self) -> None:
        """From where regular segments end."""
        scene = Scene(talk(3), keep_recent=1, share=1.0)
        first = scene.cross("manual").view.nodes[-1]
        scene.add(*talk(1, 50))
        second = scene.cross("manual").view.nodes[-1]
        assert (second.is_rest, second.first_group) == (True, first.first_group)
        assert second.end_group == first.end_group + 2


class TestEliding:
    def rows(self) -> list[JsonRow]:
        return [user(words(20)), *looked_up("a", 600), *looked_up("b", 90), *looked_up("c", 600), *talk(2, 20)]

    def test_long_results_older_than_keep_recent_are_cut_to_a_quarter_of_the_limit(self) -> None:
        """Short ones are not, nor is anything but a tool result."""
        scene = Scene([user(words(700)), *self.rows()], shorten_above=200, keep_recent=4)
        plan = scene.settled()
        assert plan.view.shortened == {3: 50, 7: 50}
        assert plan.view.nodes == ()

    @pytest.mark.parametrize("mark", [{"critical": True}, {"metadata": {"critical": True}}])
    def test_critical_results_are_never_cut_to_save_room(self, mark: JsonRow) -> None:
        """Rows marked critical are verbatim pins."""
        rows = self.rows()
        rows[2] = {**rows[2], **mark}
        assert set(Scene(rows, shorten_above=200).settled().view.shortened) == {6}

    def test_eliding_comes_before_folding(self) -> None:
        """The cheapest tokens to save: when that is enough, nothing is folded."""
        scene = Scene([*talk(4), *looked_up("a", 2_500), *talk(3, 20)], shorten_above=200)
        plan = scene.settled()
        assert (set(plan.view.shortened), plan.view.nodes) == ({9}, ())
        assert plan.freed > 2_000

    def test_what_is_cut_is_not_cut_again(self) -> None:
        """The prefix may not change at the next compaction for nothing."""
        scene = Scene(self.rows(), shorten_above=200)
        first = scene.cross()
        again = scene.settled()
        assert (again.view.shortened, again.freed) == (first.view.shortened, 0)


class TestMerging:
    def levels(self, plan: Plan) -> list[tuple[int, int]]:
        return [(node.level, node.index) for node in plan.view.nodes]

    def test_the_oldest_complete_aligned_run_of_the_lowest_level_is_merged(self) -> None:
        """Three neighbours whose first index is a multiple of fan_in."""
        scene = Scene(talk(40), target=0.01, own_budget=2_000)
        # A node is 53 tokens; the share has room for 500, nine tenths of that is 450: eight nodes.
        plan = scene.settled()
        assert plan.merged > 0
        levels = self.levels(plan)
        assert levels == sorted(levels, key=lambda at: -at[0]), "old above new"
        for node in plan.view.nodes:
            if node.children and not node.is_rest:
                assert len(node.children) == 3
                assert [child.index for child in node.children] == [node.index * 3 + at for at in range(3)]
                assert {child.level for child in node.children} == {node.level - 1}

    def test_merging_goes_on_until_a_tenth_of_the_share_is_free(self) -> None:
        """And no further: one merge less would not do."""
        scene = Scene(talk(40), target=0.01, fan_in=2, own_budget=2_000)
        plan = scene.settled()
        size = sum(scene.known[node].tokens for node in plan.view.nodes)
        assert size <= 0.9 * 500

    def test_where_no_run_is_complete_the_oldest_incomplete_one_becomes_a_rest(self) -> None:
        """Neighbours of one level and one parent."""
        scene = Scene(talk(9), target=0.01, fan_in=6, share=0.03)
        plan = scene.settled()
        assert len(scene.builder.leaves) == 4
        [node] = plan.view.nodes[:1]
        assert (node.is_rest, node.level, len(node.children), len(plan.view.nodes)) == (True, 1, 3, 1)

    def test_the_lowest_level_is_joined_before_older_and_higher_ones(self) -> None:
        """Merged summaries are pressed into one last of all: each merge may lose what the one before it kept."""
        scene = Scene(talk(24), target=0.01, fan_in=4, own_budget=2_000, share=0.28)
        plan = scene.plan()
        levels = [(node.level, node.is_rest) for node in plan.view.nodes]
        assert levels == [(1, False), (1, False), (1, True)]

    def test_a_rest_over_nodes_gives_way_to_the_complete_run_that_covers_it(self) -> None:
        """A merge of the rest's own children and their neighbours, not of the rest."""
        scene = Scene(talk(7), target=0.01, fan_in=6, share=0.03)
        plan = scene.cross()
        assert [node.is_rest for node in plan.view.nodes if node.children] == [True]
        for _ in range(14):
            scene.add(*talk(1))
            plan = scene.cross()
        regular = [node for node in plan.view.nodes if node.level == 1 and not node.is_rest]
        assert regular[0].index == 0
        assert [child.index for child in regular[0].children] == list(range(6))
        assert all(not child.children for child in regular[0].children)

    def test_the_share_yields_never_the_budget(self) -> None:
        """When nothing can be merged any more, the summaries may take more than their share."""
        scene = Scene(talk(12), target=0.01, share=0.001)
        plan = scene.settled()
        assert len(plan.view.nodes) >= 1
        assert plan.fits


class TestMustFit:
    """The ladder, one rung after the other, as the budget shrinks."""

    def test_folding_regular_segments_is_the_first_rung(self) -> None:
        """Level 1, down to the target."""
        plan = Scene(talk(20)).settled("must_fit")
        assert (plan.level, plan.fits) == (1, True)

    def test_then_the_remainder_becomes_a_rest(self) -> None:
        """Level 2: a segment so long that none is closed."""
        scene = Scene(talk(20), segment_tokens=16_000, own_budget=2_000)
        plan = scene.settled("must_fit")
        assert (plan.level, plan.fits, plan.view.lines, plan.view.shortened) == (
            2,
            True,
            0,
            {0: 200} if 0 in plan.view.shortened else {},
        )
        assert [node.is_rest for node in plan.view.nodes] == [True]
        assert plan.view.frontier == 36

    def test_then_keep_recent_is_halved(self) -> None:
        """Level 3, and no more often than it takes."""
        scene = Scene(talk(20), keep_recent=20, own_budget=1_400)
        plan = scene.settled("must_fit")
        assert (plan.level, plan.fits, plan.view.lines) == (3, True, 0)
        assert 30 <= plan.view.frontier <= 35
        assert all(keep >= 24 for keep in plan.view.shortened.values())

    def test_down_to_the_newest_group(self) -> None:
        """keep_recent 0 keeps that."""
        scene = Scene([*talk(10), *looked_up("a", 100)], keep_recent=8, own_budget=420)
        plan = scene.settled("must_fit")
        assert (plan.level, plan.fits) == (3, True)
        assert plan.view.frontier_row == 20

    def test_then_rows_are_shortened_longest_first(self) -> None:
        """Level 4: all rows above one level are cut to it; shorter ones stay."""
        rows = [user(words(20)), *talk(8), call("a", text=words(60)), result("a", words(3_000))]
        scene = Scene(rows, keep_recent=4, own_budget=600)
        plan = scene.settled("must_fit")
        assert (plan.level, plan.fits, plan.view.lines) == (4, True, 0)
        assert set(plan.view.shortened) == {18}, "the one long row is enough"
        assert plan.tokens_after <= 600

    def test_a_cut_to_fit_leaves_room_for_the_next_row(self) -> None:
        """A tenth of the budget, so that the next row still fits."""
        scene = Scene([*talk(8), call("a"), result("a", words(3_000))], own_budget=800)
        assert scene.settled("must_fit").tokens_after <= 0.9 * 800 + 24

    def test_last_the_oldest_summaries_become_one_line(self) -> None:
        """Level 5: range and counts."""
        scene = Scene([*talk(20), user(words(40))], keep_recent=4, own_budget=200, share=10.0, fan_in=20)
        plan = scene.settled("must_fit")
        assert plan.level == 5
        assert 0 < plan.view.lines <= len(plan.view.nodes)

    def test_what_cannot_fit_says_so(self) -> None:
        """As small as the rules allow: everything shortened."""
        scene = Scene([*talk(10), user(words(90))], own_budget=20)
        plan = scene.settled("must_fit")
        assert (plan.fits, plan.level, plan.view.lines) == (False, 5, len(plan.view.nodes))

    @pytest.mark.parametrize("role", ["system", "developer"])
    def test_the_hosts_system_rows_are_never_shortened(self, role: str) -> None:
        """Half an instruction is worse than none."""
        scene = Scene([{"role": role, "content": words(900)}, *talk(8), user(words(500))], own_budget=500)
        plan = scene.settled("must_fit")
        assert 0 not in plan.view.shortened
        assert not plan.fits
        assert any(row["content"] == words(900) for row in scene.view(scene.after(plan)).rows(None))

    def test_critical_rows_are_shortened_only_here(self) -> None:
        """Elide any row, where nothing else is left."""
        rows = [*talk(6), {**user(words(2_000)), "critical": True}, *talk(2)]
        scene = Scene(rows, shorten_above=100, own_budget=6_000)
        assert 12 not in scene.settled("threshold", target=0.1, threshold=0.2).view.shortened
        assert 12 in scene.settled("must_fit", own_budget=700).view.shortened

    def test_open_calls_are_never_folded(self) -> None:
        """They stand at the end, shortened where they must be."""
        scene = Scene([*talk(10), call("a", text=words(400))], keep_recent=0, own_budget=300)
        plan = scene.settled("must_fit")
        assert plan.view.frontier == 20
        assert plan.view.frontier_row == 20
        assert plan.fits

    def test_a_long_first_user_message_is_pinned_at_a_tenth(self) -> None:
        """Once it is folded; while it stands verbatim it is whole."""
        scene = Scene([user(words(1_000)), *talk(20)], own_budget=4_000)
        plan = scene.settled()
        assert plan.view.shortened == {0: 400}
        assert Scene([user(words(1_000)), *talk(4)], keep_recent=99).settled().view.shortened == {}

    def test_a_long_first_user_message_stays_at_a_tenth_where_other_rows_are_shortened(self) -> None:
        """A first user message larger than a tenth of the budget is pinned as head and tail."""
        scene = Scene([user(words(3_000)), *talk(4, 20), user(words(2_000))], own_budget=1_000, keep_recent=0)
        plan = scene.settled("must_fit")
        assert plan.view.frontier > 0
        assert plan.view.shortened[0] <= 100


def scenes() -> list[Any]:
    """Histories and limits of every kind that a plan's size has to be right for."""
    shortened = [*talk(6), *looked_up("a", 900), *talk(2)]
    lost = [*talk(18), result("lost", words(500)), *talk(2)]
    made: list[tuple[str, Scene, Reason]] = [
        ("threshold", Scene(talk(20)), "threshold"),
        ("merging", Scene(talk(40), target=0.01, own_budget=2_000), "threshold"),
        ("manual", Scene(talk(10), keep_recent=2), "manual"),
        ("elided", Scene(shortened, shorten_above=200), "threshold"),
        ("system", Scene([{"role": "system", "content": "be kind"}, hook("x y z"), *talk(20)]), "threshold"),
        ("system twice", Scene([{"role": "system", "content": "be kind"}, *talk(9)] * 2), "threshold"),
        ("hidden", Scene([{"role": "system", "content": words(400)}, *talk(20)], factory=True), "threshold"),
        ("critical", Scene([*talk(3), {**user(words(60)), "critical": True}, *talk(17)]), "threshold"),
        ("long first", Scene([user(words(1_000)), *talk(20)]), "threshold"),
        ("rest", Scene(talk(20), segment_tokens=16_000, own_budget=2_000), "must_fit"),
        ("halved", Scene(talk(20), keep_recent=20, own_budget=1_400), "must_fit"),
        ("shortened", Scene([*talk(8), call("a"), result("a", words(3_000))], own_budget=600), "must_fit"),
        ("open", Scene([*talk(20), calls(("a", "x", {}), ("b", "y", {})), result("b")], keep_recent=0), "threshold"),
        ("orphan", Scene(lost, keep_recent=20), "threshold"),
        ("abandoned", Scene([*talk(16), call("x"), *talk(4)], keep_recent=20), "threshold"),
        ("open hook", Scene([*talk(20), call("x"), hook(words(300))]), "threshold"),
        ("line", Scene([*talk(20), user("hm")], own_budget=200, share=10.0, fan_in=20), "must_fit"),
        ("opening", Scene([*(assistant(words(97)) for _ in range(40)), *talk(2)]), "threshold"),
    ]
    return [pytest.param(scene, reason, id=name) for name, scene, reason in made]


class TestExactness:
    @pytest.mark.parametrize(("scene", "reason"), scenes())
    def test_a_plan_is_as_large_as_the_view_that_is_built_from_it(self, scene: Scene, reason: Reason) -> None:
        """`tokens_after` is exact once nothing is missing: budgets are kept by it, and events tell it."""
        plan = scene.settled(reason)
        assert plan.view.frontier > 0
        assert plan.tokens_after == scene.view(scene.after(plan)).tokens()

    @pytest.mark.parametrize("turns", [4, 12])
    def test_the_size_before_the_first_compaction_is_that_of_the_view(self, turns: int) -> None:
        """`tokens_before` is told in events, and what a compaction frees is weighed by it."""
        scene = Scene(talk(turns))
        assert scene.plan().tokens_before == scene.view().tokens()

    def test_the_size_before_a_later_compaction_is_that_of_the_view(self) -> None:
        """With the newest user message of the last compaction pinned."""
        scene = Scene([*talk(3), *(row for at in range(12) for row in looked_up(f"c{at}", 200))])
        scene.cross()
        scene.add(*looked_up("more", 300), *talk(2))
        assert scene.plan().tokens_before == scene.view().tokens()


# --- made of what is ready ------------------------------------------------------------------------------------------


def ready_scene(ready: int, **limits: Any) -> Scene:
    """A view of 3,200 tokens above its threshold, of whose next compaction so many of seven summaries are there."""
    scene = Scene(talk(16), **limits)
    scene.known.update((node, scene.show(node)) for node in scene.plan().missing[:ready])
    return scene


def test_a_compaction_for_a_cold_cache_is_made_of_what_is_ready() -> None:
    """As far as it goes; nothing is asked for."""
    scene = ready_scene(2)
    plan = scene.plan("cold_cache")
    assert (plan.reason, len(plan.view.nodes), plan.missing) == ("cold_cache", 2, ())
    assert 0 < plan.freed < scene.plan().freed


def test_an_easy_plan_is_one_that_the_very_threshold_would_have_asked_for() -> None:
    """Its summaries are under way already; the whole goes down to the target."""
    scene = ready_scene(0, share=1.0, threshold=0.6, keep_recent=1)
    whole, easy = scene.plan(), scene.plan(easy=True)
    assert easy.view.nodes == whole.view.nodes[: len(easy.view.nodes)] != whole.view.nodes
    assert easy.reached
    assert easy.tokens_after > scene.limits().target_room


def test_a_compaction_of_what_is_ready_goes_no_further_though_it_does_not_fit() -> None:
    """What must fit waits for summaries instead."""
    scene = ready_scene(2, own_budget=2_400, share=1.0)
    plan = scene.plan("cold_cache")
    assert (plan.fits, plan.missing, plan.level, len(plan.view.nodes)) == (False, (), 1, 2)
    assert plan.tokens_after > 2_400
    assert scene.settled("must_fit").fits


def test_what_is_made_ahead_is_what_the_compaction_at_the_threshold_asks_for() -> None:
    scene = Scene(talk(13), share=1.0)
    ahead = next_plan(scene.planned()).missing
    assert scene.plan().tokens_before < scene.limits().threshold_room
    scene.add(*talk(1))
    assert scene.plan().tokens_before >= scene.limits().threshold_room
    assert ahead
    assert scene.plan().view.nodes == ahead


# --- edges ----------------------------------------------------------------------------------------------------------


def test_a_plan_of_exactly_what_it_aims_at_has_reached_it() -> None:
    scene = Scene(talk(20))
    plan = scene.settled(share=1.0)
    exact = scene.settled(share=1.0, target=(plan.tokens_after + 0.5) / 4_000)
    assert (exact.tokens_after, exact.reached) == (plan.tokens_after, True)
    assert not scene.settled(share=1.0, keep_recent=40, target=0.9).reached


def test_a_view_of_exactly_its_budget_fits_and_keeps_everything() -> None:
    scene = Scene(talk(20), keep_recent=40, own_budget=4_000)
    plan = scene.settled()
    assert (plan.tokens_after, plan.fits, plan.level) == (4_000, True, 1)
    assert scene.settled(own_budget=3_999, threshold=1.0).view.nodes


@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_results_are_shortened_above_the_threshold_and_not_at_it(more: int) -> None:
    """Those above the limit, all but that of the last group: the model has not seen it yet."""
    rows = [user(words(20)), *(row for at in range(8) for row in looked_up(f"c{at}", 390))]
    scene = Scene(rows, segment_tokens=16_000, shorten_above=300, keep_recent=20)
    threshold = (scene.view().tokens() - more + 0.5) / 4_000
    assert [*scene.settled(threshold=threshold).view.shortened] == ([*range(2, 16, 2)] if more else [])


def test_no_result_below_the_limit_is_shortened_where_a_view_fits() -> None:
    rows = [user(words(20)), *(row for at in range(8) for row in looked_up(f"c{at}", 390))]
    scene = Scene(rows, segment_tokens=16_000, shorten_above=400, keep_recent=2)
    assert scene.settled(threshold=0.1).view.shortened == {}
    assert scene.settled("must_fit", own_budget=300).view.shortened


def test_only_merges_that_no_view_has_shown_are_counted() -> None:
    scene = Scene(talk(40), own_budget=2_000, fan_in=3)
    first = scene.cross()
    merges = sum(1 for node in first.view.nodes if node.children)
    assert first.merged == merges > 1
    assert len(first.view.nodes) > merges
    assert scene.settled().merged == 0


def test_what_the_user_pins_is_named_where_it_lies_before_the_frontier() -> None:
    scene = Scene(talk(20))
    frontier = scene.settled().view.frontier
    scene.pins = (frontier - 1, frontier, frontier + 1)
    plan = scene.settled()
    assert plan.view.pinned == tuple(at for at in scene.pins if at < plan.view.frontier)
    scene.pins = (plan.view.frontier,)
    assert scene.settled().view.frontier == plan.view.frontier
    assert scene.settled().view.pinned == ()


# --- the row of notes -----------------------------------------------------------------------------------------------


def written(files: int) -> list[JsonRow]:
    return [
        row
        for at in range(files)
        for row in (
            user(words(150)),
            call(f"c{at}", "write_file", file_path=f"src/file_{at}.py", content="x"),
            result(f"c{at}", "ok", "write_file"),
        )
    ]


def test_a_plan_reserves_all_that_the_row_of_notes_may_take() -> None:
    """It is written once its summaries are there, and takes no more."""
    scene = Scene(written(20), notes_room=200, share=1.0)
    plan = scene.cross()
    assert scene.state.notes is not None
    assert "src/file_0.py" in scene.state.notes.text
    assert 0 < scene.state.notes.tokens <= 200
    assert plan.tokens_after - scene.view().tokens() == 200 - scene.state.notes.tokens
    assert plan.view.frontier == Scene(written(20), notes_room=0, share=1.0).settled().view.frontier


def test_the_row_of_notes_stays_while_summaries_are_appended_and_at_most_twice() -> None:
    """So that the provider's cache holds."""
    scene = Scene(written(20), notes_room=200, share=1.0)
    scene.cross()
    first = scene.state.notes
    assert first is not None
    rows = [first.row]
    for _ in range(3):
        before = scene.state
        scene.add(*written(12))
        plan = scene.cross()
        assert plan.view.frontier > before.frontier
        assert (plan.merged, scene.state.nodes[: len(before.nodes)]) == (0, before.nodes)
        assert scene.state.notes is not None
        rows.append(scene.state.notes.row)
    assert rows[0] == rows[1] == rows[2] != rows[3]


@pytest.mark.parametrize("less", [0, 1])
def test_the_row_of_notes_goes_first_where_the_view_does_not_fit(less: int) -> None:
    """And not where it fits exactly."""
    scene = Scene(written(20), notes_room=200, share=1.0)
    plan = scene.settled("manual")
    assert plan.notes_room
    again = scene.settled("manual", view_room=plan.tokens_after - less)
    assert (again.notes_room == 0) is bool(less)
    assert (again.view.nodes, again.fits) == (plan.view.nodes, True)
