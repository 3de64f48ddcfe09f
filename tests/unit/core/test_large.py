"""Large rows and large groups: what one step takes, and how often things are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest

from context_summarize.background import Steps, finished
from context_summarize.core.action_log import ActionLog
from context_summarize.core.groups import Grouper
from context_summarize.core.history import History
from context_summarize.core.large_rows import evenly_cut, head_and_tail
from context_summarize.core.node_builder import NodeBuilder
from context_summarize.core.nodes import Node
from context_summarize.core.rendering import hash_steps, render_group, render_steps
from context_summarize.core.shown_groups import ShownGroups
from context_summarize.facts.extraction import extract_facts, fact_steps
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call, Row
from context_summarize.redaction.redactor import build_redactor, redact_steps
from context_summarize.redaction.views import view_of
from context_summarize.summaries.pieces import piece_steps
from context_summarize.testing import assistant, user
from context_summarize.tokens.counter import EXACT_CHARS, PIECE_CHARS, count_steps
from context_summarize.transcript import escaping
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.rows import RenderedRow

T = TypeVar("T")
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


class Counter:
    """Counts words, and notes what it was given."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, text: str) -> int:
        self.seen.append(len(text))
        return len(text.split())


class Id(str):
    """A call id that counts its comparisons."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Id.compared += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


class TestCounting:
    def test_a_text_is_counted_in_short_pieces(self) -> None:
        """Cut between words, so that the sum is the same."""
        count = Counter()
        assert finished(count_steps("one two three\n" * 20_000, count)) == 60_000
        assert max(count.seen) <= PIECE_CHARS

    def test_a_text_beyond_any_window_is_estimated(self) -> None:
        """From pieces all over it."""
        count = Counter()
        text = "one two three\n" * 200_000 + "onetwothree!!\n" * 200_000
        assert finished(count_steps(text, count)) == pytest.approx(800_000, rel=0.02)
        assert sum(count.seen) == EXACT_CHARS


class TestGroups:
    def test_results_find_their_calls_without_a_search(self) -> None:
        """Ten thousand parallel calls are no hundred million comparisons."""
        many = 1_000
        ids = [Id(f"call {at}") for at in range(many)]
        grouper = Grouper()
        named = tuple(Call(call_id, "look", {}) for call_id in ids)
        asked = Row({}, "assistant", True, False, False, False, named, ())
        closed = grouper.feed(0, asked)
        Id.compared = 0
        for at, call_id in enumerate(ids, 1):
            closed += grouper.feed(at, Row({}, "tool", True, False, False, False, (), (Id(call_id),)))
        assert [len(group.answers) for group in closed] == [many]
        assert Id.compared <= 4 * many


class TestRedaction:
    @pytest.mark.parametrize("place", [*range(31_950, 32_010, 7), 39_990, 63_980, 64_000, 71_990])
    def test_a_secret_is_found_wherever_a_long_text_is_cut(self, place: int) -> None:
        """Windows show what stands around their own part."""
        text = ("word " * 30_000)[:place] + f" {SECRET} " + "word " * 10_000
        redact = build_redactor(True)
        assert redact is not None
        assert redact(text) == text.replace(SECRET, "[redacted: GitHub token]")

    def test_a_long_key_that_begins_in_one_window_is_found_whole(self) -> None:
        """The window grows until the key ends in it."""
        key = (
            "-----BEGIN RSA PRIVATE KEY-----\n"
            + "MIIEabcd0123+/xyMIIEabcd0123+/xy\n" * 900
            + "-----END RSA PRIVATE KEY-----"
        )
        redact = build_redactor(True)
        assert redact is not None
        clean = redact("word " * 6_000 + key + "\nword" * 10_000)
        assert "MIIE" not in clean
        assert clean.count("word") == 16_000

    def test_no_window_is_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each is a step."""
        seen: list[int] = []

        def noted(text: str, *, joined: bool) -> object:
            seen.append(len(text))
            return view_of(text, joined=joined)

        monkeypatch.setattr("context_summarize.redaction.redactor.view_of", noted)
        steps = sum(1 for _ in redact_steps("word " * 200_000, build_redactor(True)))
        assert max(seen) <= 48_000
        assert steps >= 1_000_000 // 32_000


class TestEscaping:
    @pytest.mark.parametrize("sep", ["\n", "\r", "\u2028"])
    def test_pieces_are_escaped_like_the_whole(self, sep: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wherever a piece ends."""
        lines = [
            "#1 user",
            "a, b",
            "",
            "# 12\u200b3 tool x",
            "=== transcript",
            "## Summary 3",
            "plain words here",
            "#9 us",
        ]
        text = sep.join(lines * 6)
        whole = escape_marks(text)
        assert whole.count(" #1 user") == 6
        for size in range(3, 90):
            monkeypatch.setattr(escaping, "_PIECE", size)
            assert escape_marks(text) == whole


class TestRendering:
    def test_a_row_of_ten_segments_is_whole_and_a_longer_one_is_not(self) -> None:
        """Nine pieces of a segment, and notes whose sizes add up to the row."""
        for size, is_whole in ((40_960, True), (40_961, False), (400_000, False)):
            history = History()
            text = ("word " * 100_000)[:size]
            history.add(analyse(user(text)))
            [row] = render_group(history.rows, history.groups[0], number=1, segment_tokens=1_024)
            assert (row.text == text) is is_whole
            if not is_whole:
                assert row.left_out is not None
                assert row.left_out[1] == size
                assert row.left_out[0] == size - 9 * 4_096
                assert row.text.count("characters left out …]") == (8 if size > 41_000 else row.text.count("[…"))
                assert len(row.text) < 40_960

    def test_a_large_row_is_rendered_and_hashed_in_many_steps(self) -> None:
        """Uncut, as the running hash needs it; the hash is the same."""
        history = History()
        history.add(analyse(user("A line, and more.\n" * 120_000)))
        steps = render_steps(history.rows, history.groups[0], number=1, segment_tokens=None)
        assert sum(1 for _ in steps) > 20
        rendered = render_group(history.rows, history.groups[0], number=1, segment_tokens=None)
        assert sum(1 for _ in hash_steps(rendered)) >= 8
        assert len(finished(hash_steps(rendered))) == 32

    @pytest.mark.parametrize("shift", range(0, 60, 5))
    def test_no_half_of_a_secret_is_left_at_a_cut(self, shift: int) -> None:
        """What stands around a piece is redacted with it."""
        text = "x" * shift + f" {SECRET}" * 5_000
        redact = build_redactor(True)
        for sample in (finished(evenly_cut(text, 512, redact)), finished(head_and_tail(text, 4_096, redact))):
            assert "a1B2" not in sample.text
            assert "[redacted: GitHub token]" in sample.text


class TestShortForms:
    def test_long_work_is_put_off_and_estimated(self) -> None:
        """A plan is made of it, then the short forms in slices, then the plan again."""
        history, count = History(), Counter()
        for at in range(3):
            history.add(analyse(user(f"word {at} " * 20_000)))
        groups = ShownGroups(history, count)
        groups.catch_up()
        with groups.deferring() as unmade:
            assert [groups.short_size(at, 500) for at in range(3)] == [500, 500, 500]
        assert unmade == [(0, 500), (1, 500), (2, 500)]
        finished(groups.make_short(unmade))
        with groups.deferring() as unmade:
            exact = [groups.short_size(at, 500) for at in range(3)]
        assert unmade == []
        assert all(200 < size <= 500 for size in exact)


class TestFacts:
    def test_a_large_row_is_read_in_pieces(self) -> None:
        """With the same values."""
        text = "".join(f"Order ORD-{at:05d} is at /var/log/order/{at}.txt\n" for at in range(4_000))
        row = RenderedRow(1, "tool", "look", text)
        assert sum(1 for _ in fact_steps([row])) >= 2 * len(text) // 50_000
        assert {"ORD-00000", "ORD-01999", "/var/log/order/3999.txt"} <= {fact.value for fact in extract_facts([row])}


class TestPieces:
    @pytest.mark.parametrize("words", [1_000, 20_000, 200_000])
    def test_a_part_gives_at_most_nine(self, words: int) -> None:
        """The rest is named with its size, and no piece of it is counted at once if it is long."""
        count = Counter()
        cut = finished(piece_steps(["word " * words, "the end"], 500, count))
        assert len(cut) <= 10
        assert cut[0].startswith("word")
        assert cut[-1].endswith("the end")
        assert ("characters left out" in "".join(cut)) is (words > 4_500)
        assert max(count.seen) <= PIECE_CHARS


@pytest.mark.parametrize("several", [list, tuple])
def test_reasoning_is_seen_in_content_of_any_kind(several: Any) -> None:
    """Hosts that work in Python may keep blocks in a tuple."""
    thought = {"type": "thinking", "thinking": "A flight.", "signature": "s"}
    history = History()
    for raw in (user("Go."), assistant(several([thought, {"type": "text", "text": "Done."}])), user("More.")):
        history.add(analyse(raw))
    builder = NodeBuilder(history, "s", "m", None)
    builder.start(512, 100, first_group=0, first_index=0)
    node = Node("k", 0, 0, 0, 2, 100, 512)
    assert builder.shows_reasoning(node)
    assert not builder.shows_reasoning(replace(node, end_group=1))


def test_results_of_many_calls_in_one_row_are_found_by_their_ids() -> None:
    """A row is not searched once more for each call."""
    count = 500
    entries = [{"id": Id(f"c{at}"), "tool": "rm", "arguments": {"path": f"f{at}"}} for at in range(count)]
    blocks = [{"type": "tool_result", "tool_use_id": Id(f"c{at}"), "content": "Done."} for at in range(count)]
    history = History()
    for raw in ({"role": "assistant", "content": "", "tool_calls": entries}, {"role": "user", "content": blocks[::-1]}):
        history.add(analyse(raw))
    log = ActionLog(history, {}, None, len)
    Id.compared = 0
    assert sum(1 for _ in log.advance()) > count
    assert Id.compared <= 10 * count
    shown = log.shown(1, 400, "system")
    assert shown is not None
    assert f"+{count - shown.text.count('(#1)')} more" in shown.text


def steps_of(steps: Steps[T]) -> tuple[int, T]:
    """How many steps there are, and what they return."""
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return taken, end.value
        taken += 1
