"""The planner alone, without an event loop: what is summarised, merged, shortened, and how far it goes to fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from context_summarize.core.draft import PlanInput
from context_summarize.core.frames import show_node, show_notes
from context_summarize.core.limits import Limits
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.notes_log import NotesLog
from context_summarize.core.plan import CompactionRequest, Plan, Reason, next_plan, plan
from context_summarize.core.render import Rendering, render, results
from context_summarize.core.segments import Cutting, Segments
from context_summarize.core.view import ShownNode, View
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.readings import Readings
from context_summarize.tokens.measure import measure
from tests.support.rows import assistant, call, calls, hook, result, user

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
        self.log = Log(count)
        self.segments = Segments(self.log, Cutting("segment", "merge", segment_tokens, SUMMARY_WORDS), 0)
        self.notes = NotesLog(self.log, Readings.fresh({}, ()), "")
        self.pins: tuple[int, ...] = ()
        self.add(*rows)
        self.state = View(hides_system=factory)
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
            self.log.add(analyse(normalise(raw)))
        self.segments.take_in()

    def limits(self, **changes: Any) -> Limits:
        given = {**self.given, **changes}
        room = given.pop("own_budget") - self.system_tokens
        return Limits(**{"system_tokens": self.system_tokens, "view_room": room, "base": room, **given})

    def plan(self, reason: Reason = "threshold", focus: str | None = None, **changes: Any) -> Plan:
        request = CompactionRequest(reason, focus, known_only=reason == "cold_cache")
        return plan(self.planned(**changes), request)

    def planned(self, **changes: Any) -> PlanInput:
        return PlanInput(
            log=self.log,
            segments=self.segments,
            view=self.state,
            limits=self.limits(**changes),
            pins=self.pins,
            size_of=lambda node: self.known[node].tokens if node in self.known else None,
        )

    def show(self, node: Node) -> ShownNode:
        text = words(SUMMARY_WORDS, f"sum{node.level}")
        return show_node(self.log, node, Summary(node.key, node.level, text, 0, 0), frame)

    def settled(self, reason: Reason = "threshold", focus: str | None = None, **changes: Any) -> Plan:
        """Plan until nothing is missing, as a compaction does."""
        while (plan := self.plan(reason, focus, **changes)).missing:
            self.known.update((node, self.show(node)) for node in plan.missing)
        return plan

    def cross(self, reason: Reason = "threshold", focus: str | None = None, **changes: Any) -> Plan:
        """Make the compaction."""
        plan = self.settled(reason, focus, **changes)
        self.state = self.after(plan)
        self.segments = self.segments.going_on_from(self.state.frontier)
        self.segments.take_in()
        return plan

    def after(self, plan: Plan) -> View:
        shown = [self.known[node] for node in plan.view.nodes]
        view = replace(plan.view, shown=tuple(shown))
        text = self.notes.write(view, (), plan.notes_room, ()).text if plan.notes_room else ""
        return replace(view, notes=show_notes(self.log, text, view.frontier) if text else None)

    def view(self, state: View | None = None) -> Rendering:
        return render(self.log, state or self.state)

    def ends(self) -> list[int]:
        return [leaf.end_group for leaf in self.segments.leaves]


# --- summarising ----------------------------------------------------------------------------------------------------


def test_the_oldest_segments_are_summarised_until_the_target_is_reached() -> None:
    """Not one more than that takes."""
    scene = Scene(talk(20))
    plan = scene.settled(share=1.0)
    assert plan.tokens_after <= 1_200 < plan.tokens_before
    assert plan.segments == scene.ends().index(plan.view.frontier) + 1 == len(plan.view.nodes)
    one_less = scene.settled(share=1.0, target=(plan.tokens_after + 1) / 4_000)
    assert one_less.view.frontier == plan.view.frontier
    assert scene.settled(share=1.0, target=0.5).view.frontier < plan.view.frontier
    assert (plan.level, plan.view.shortened, plan.fits) == (1, {}, True)


@pytest.mark.parametrize("keep", [0, 1, 7, 33, 40])
def test_the_newest_rows_are_never_summarised(keep: int) -> None:
    """`keep_recent` rows stand verbatim, whatever the target."""
    scene = Scene(talk(20), keep_recent=keep, target=0.01, own_budget=6_000)
    plan = scene.settled()
    assert plan.view.frontier_row <= 40 - max(keep, 1)
    assert plan.view.frontier == max([end for end in scene.ends() if end <= 40 - max(keep, 1)], default=0)


def test_compact_summarises_down_to_keep_recent() -> None:
    """The run after the last closed segment is one that ends early; a second compaction goes on behind it."""
    scene = Scene(talk(10), keep_recent=2, share=1.0)
    plan = scene.cross("manual")
    *whole, rest = plan.view.nodes
    assert plan.view.frontier == rest.end_group == 18
    assert (rest.children, rest.first_group) == ((), whole[-1].end_group)
    assert (plan.level, plan.segments) == (2, len(plan.view.nodes))
    scene.add(*talk(1, 50))
    assert scene.cross("manual").view.nodes[:-1] == plan.view.nodes
    scene.add(*talk(8))
    view = scene.cross("threshold", target=0.01).view
    edges = [0, *(node.end_group for node in view.nodes)]
    assert [node.first_group for node in view.nodes] == edges[:-1]
    assert len(view.nodes) > len(plan.view.nodes) + 1


# --- merging --------------------------------------------------------------------------------------------------------


def test_the_oldest_complete_run_of_the_lowest_level_is_merged() -> None:
    """Three neighbours, until a tenth of the share of 500 is free."""
    scene = Scene(talk(40), target=0.01, own_budget=2_000)
    plan = scene.settled()
    assert plan.merged > 0
    levels = [node.level for node in plan.view.nodes]
    assert levels == sorted(levels, reverse=True), "old above new"
    assert sum(scene.known[node].tokens for node in plan.view.nodes) <= 0.9 * 500
    for node in plan.view.nodes:
        assert len(node.children) in (0, 3)
        assert {child.level for child in node.children} <= {node.level - 1}


def test_where_no_run_is_complete_the_lowest_one_is_joined_and_grows() -> None:
    """It is made anew of what it was joined from, until it is complete."""
    scene = Scene(talk(9), target=0.01, fan_in=6, share=0.03)
    plan = scene.cross()
    assert [(node.level, len(node.children)) for node in plan.view.nodes] == [(1, 3)]
    for _ in range(14):
        scene.add(*talk(1))
        plan = scene.cross()
    first = plan.view.nodes[0]
    while first.level > 1:
        first = first.children[0]
    assert first.children == tuple(scene.segments.leaves[:6])


def test_summaries_are_merged_where_there_is_nothing_to_summarise() -> None:
    """Their share has become smaller; the row of notes comes out of it."""
    scene = Scene(talk(20), share=1.0)
    scene.cross()
    plan = scene.settled(share=0.05, target=1.0, keep_recent=40)
    assert (plan.segments, plan.merged, len(plan.view.nodes)) == (0, 1, 1)
    assert scene.settled(share=0.3, target=1.0, keep_recent=40).merged == 0
    assert scene.settled(share=0.3, target=1.0, keep_recent=40, notes_room=1_000).merged > 0


# --- shortening -----------------------------------------------------------------------------------------------------


def long_results() -> list[JsonRow]:
    return [user(words(20)), *looked_up("a", 600), *looked_up("b", 90), *looked_up("c", 600), *talk(2, 20)]


def test_long_results_older_than_keep_recent_are_cut_to_a_quarter_of_the_limit() -> None:
    """Short ones are not, nor anything but a tool result; what is cut is not cut again."""
    scene = Scene([user(words(700)), *long_results()], shorten_above=200, keep_recent=4)
    [size] = {entry.tokens for entry in results(scene.log, 0, 10) if entry.tokens > 200}
    assert not {3, 7} & set(scene.settled(shorten_above=size).view.shortened), "at the limit they are not"
    first = scene.cross()
    assert (first.view.shortened, first.view.nodes) == ({3: 50, 7: 50}, ())
    again = scene.settled()
    assert (again.view.shortened, again.freed) == (first.view.shortened, 0)


def test_a_long_first_user_message_is_pinned_at_a_tenth() -> None:
    """Once it is summarised; while it stands verbatim it is whole. Where other rows are shortened, it stays so."""
    assert Scene([user(words(1_000)), *talk(20)], own_budget=4_000).settled().view.shortened == {0: 400}
    assert Scene([user(words(1_000)), *talk(4)], keep_recent=99).settled().view.shortened == {}
    assert Scene([user(words(397)), *talk(20)]).settled().view.shortened == {}, "a tenth is not long"
    scene = Scene([user(words(1_000)), *talk(20)])
    scene.cross()
    smaller = scene.settled(own_budget=2_500, keep_recent=40, threshold=1.0, target=1.0)
    assert smaller.view.shortened == {0: 250}, "in a smaller window it is cut again, though nothing is summarised"
    rows = [user(words(3_000)), *talk(4, 20), user(words(2_000))]
    view = Scene(rows, own_budget=1_000, keep_recent=0).settled("must_fit").view
    assert view.frontier > 0
    assert view.shortened[0] <= 100


# --- what must fit: one level after the other, as the budget shrinks ------------------------------------------------


def test_the_third_level_is_to_halve_keep_recent_down_to_the_newest_group() -> None:
    """No more often than it takes."""
    plan = Scene(talk(20), keep_recent=20, own_budget=1_400).settled("must_fit")
    assert (plan.level, plan.fits, plan.view.frontier_row) == (3, True, 30)
    edges = [(node.level, node.end_group) for node in plan.view.nodes]
    assert edges == [(2, 30)], "segments first, then the remainder, merged"
    plan = Scene([*talk(10), *looked_up("a", 100)], keep_recent=8, own_budget=420).settled("must_fit")
    assert (plan.level, plan.fits, plan.view.frontier_row) == (3, True, 20)


def test_the_fourth_level_is_to_shorten_the_longest_rows() -> None:
    """All rows above one length are cut to it; shorter ones stay, and a tenth is left for the next row."""
    rows = [user(words(20)), *talk(8), call("a", text=words(60)), result("a", words(3_000))]
    plan = Scene(rows, keep_recent=4, own_budget=600).settled("must_fit")
    assert (plan.level, plan.fits, plan.view.is_bare) == (4, True, False)
    assert set(plan.view.shortened) == {18}, "the one long row is enough"
    assert plan.tokens_after <= 0.9 * 600 + 24
    rows = [*talk(8), call("a", text=words(3_000)), result("a", "ok")]
    view = Scene(rows, own_budget=600).settled("must_fit").view
    assert (view.frontier_row, 16 in view.shortened) == (16, True)


def test_the_last_level_is_one_line_for_all_summaries() -> None:
    """It tells which messages are gone; a view of it has the size that was planned."""
    scene = Scene([*talk(20), user(words(40))], keep_recent=4, own_budget=400, share=10.0, fan_in=20)
    plan = scene.cross("must_fit")
    assert (plan.level, plan.fits, plan.view.is_bare) == (5, True, True)
    rows = scene.view().rows(None)
    assert plan.tokens_after == scene.view().tokens == sum(measure(row, count) for row in rows)
    [line] = [row for row in rows if "messages" in row.get("metadata", {})]
    assert line["metadata"]["messages"] == [1, 40]
    assert scene.settled("must_fit", own_budget=4_000).view.is_bare is False


# --- sizes ----------------------------------------------------------------------------------------------------------


def scenes() -> list[Any]:
    """Histories and limits of every kind that a plan's size has to be right for."""
    shortened = [*talk(6), *looked_up("a", 900), *talk(2)]
    lost = [*talk(18), result("lost", words(500)), *talk(2)]
    made: list[tuple[str, Scene, Reason]] = [
        ("threshold", Scene(talk(20)), "threshold"),
        ("merging", Scene(talk(40), target=0.01, own_budget=2_000), "threshold"),
        ("manual", Scene(talk(10), keep_recent=2), "manual"),
        ("shortened results", Scene(shortened, shorten_above=200), "threshold"),
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


@pytest.mark.parametrize(("scene", "reason"), scenes())
def test_a_plan_is_as_large_as_the_view_that_is_built_from_it(scene: Scene, reason: Reason) -> None:
    """`tokens_after` is exact once nothing is missing, and so is `tokens_before`: budgets are kept by them."""
    assert scene.plan(reason).tokens_before == scene.view().tokens
    plan = scene.cross(reason)
    assert plan.view.frontier > 0
    assert plan.view.compactions == 1
    assert plan.tokens_after == scene.view().tokens
    scene.add(*looked_up("more", 300), *talk(2))
    assert scene.plan(reason).tokens_before == scene.view().tokens


# --- made ahead -----------------------------------------------------------------------------------------------------


def test_what_is_made_ahead_is_what_the_compaction_at_the_threshold_asks_for() -> None:
    scene = Scene(talk(13), share=1.0)
    ahead = next_plan(scene.planned()).missing
    assert scene.plan().tokens_before < scene.limits().threshold_room
    scene.add(*talk(1))
    assert scene.plan().tokens_before >= scene.limits().threshold_room
    assert ahead
    assert scene.plan().view.nodes == ahead
    assert next_plan(scene.planned(keep_recent=99)).missing == ahead, "rows that are still too new count"
    scene = Scene([*talk(4), *looked_up("a", 2_500), *talk(3, 20)], shorten_above=200)
    assert next_plan(scene.planned()).view.shortened == {9: 50}


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


@pytest.mark.parametrize("less", [0, 1])
def test_the_row_of_notes_goes_first_where_the_view_does_not_fit(less: int) -> None:
    """And not where it fits exactly."""
    scene = Scene(written(20), notes_room=200, share=1.0)
    plan = scene.settled("manual")
    assert plan.notes_room
    again = scene.settled("manual", view_room=plan.tokens_after - less)
    assert (again.notes_room == 0) is bool(less)
    assert (again.view.nodes, again.fits) == (plan.view.nodes, True)


def test_open_calls_are_never_summarised() -> None:
    """They stand at the end, shortened where they must be."""
    plan = Scene([*talk(10), call("a", text=words(400))], keep_recent=0, own_budget=300).settled("must_fit")
    assert (plan.view.frontier, plan.view.frontier_row, plan.fits) == (20, 20, True)
