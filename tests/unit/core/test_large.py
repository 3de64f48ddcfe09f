"""Large rows and large groups: what is shown of them, and how often things are compared."""

from __future__ import annotations

import pytest

from context_summarize.core.groups import Grouper
from context_summarize.core.history import History
from context_summarize.core.rendering import render_group
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import Call, Row
from context_summarize.redaction import build_redactor
from context_summarize.testing import user

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


class Id(str):
    """A call id that counts its comparisons."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Id.compared += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


def test_results_find_their_calls_without_a_search() -> None:
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


def test_a_row_of_ten_segments_is_whole_and_a_longer_one_is_not() -> None:
    """Head and tail of ten segments, and between them a note of what was left out."""
    for size, is_whole in ((40_960, True), (40_961, False), (400_000, False)):
        history = History()
        text = ("word " * 100_000)[:size]
        history.add(analyse(user(text)))
        [row] = render_group(history.rows, history.groups[0], number=1, segment_tokens=1_024)
        assert (row.text == text) is is_whole
        if not is_whole:
            head, note, tail = row.text.split("\n")
            assert (len(head), len(tail)) == (40_960 * 2 // 3, 40_960 // 3)
            assert note == f"[… {size - len(head) - len(tail):,} of {size:,} characters left out …]"


@pytest.mark.parametrize("shift", [0, 15, 40])
def test_no_half_of_a_secret_is_left_at_a_cut(shift: int) -> None:
    """A row is redacted before it is cut."""
    history = History()
    history.add(analyse(user("x" * shift + f" {SECRET}" * 5_000)))
    for segment_tokens in (102, 512):
        redact = build_redactor(True)
        [row] = render_group(history.rows, history.groups[0], number=1, segment_tokens=segment_tokens, redact=redact)
        assert "left out" in row.text
        assert "a1B2" not in row.text
        assert "[redacted: GitHub token]" in row.text
