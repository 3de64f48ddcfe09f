"""The time that rows get: ISO 8601 in UTC, only where the host gave none, and the same one for the same row."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.messages.timing import set_times, time_text, timeless
from context_summarize.testing import JsonRow
from tests.support.rows import assistant, user

NOW = time_text(1_774_000_000.25)


def timed(row: JsonRow, now: str = NOW, ours: list[JsonRow] | None = None) -> JsonRow:
    copy = dict(row)
    set_times([copy], now, ours or ())
    return copy


def test_it_is_iso_8601_in_utc_with_milliseconds() -> None:
    assert NOW == "2026-03-20T09:46:40.250+00:00"
    assert timed(user("Hello.")) == {"role": "user", "content": "Hello.", "metadata": {"timestamp": NOW}}


@pytest.mark.parametrize(
    "given",
    [
        {"metadata": {"timestamp": "2026-02-06T10:00:00.123Z"}},
        {"timestamp": "2026-02-06T10:00:00Z"},  # beside the metadata, as older hosts write it
        {"metadata": ["no place for a time"]},
    ],
)
def test_a_time_of_the_hosts_stays_as_it_is(given: dict[str, Any]) -> None:
    row = {**user("Hello."), **given}
    assert timed(row) == row


@pytest.mark.parametrize("marks", [None, {}, {"timestamp": None}, {"source": "hook"}])
def test_other_marks_stay_and_are_not_those_of_the_host(marks: dict[str, Any] | None) -> None:
    before = dict(marks or {})
    row = timed({**user("Hello."), "metadata": marks})
    assert row["metadata"] == {**before, "timestamp": NOW}
    assert (marks or {}) == before
    assert timeless(row) == timeless({**user("Hello."), "metadata": marks})


def test_rows_that_come_again_keep_the_times_that_they_were_given() -> None:
    """Each of two equal ones its own; a row that is new between them gets the time of now."""
    times = [time_text(second) for second in (1, 2, 3)]
    ours = [timed(row, at) for row, at in zip([user("go"), assistant("done"), user("go")], times, strict=True)]
    given = [user("go"), user("new"), assistant("done"), user("go")]
    set_times(given, NOW, ours)
    assert [row["metadata"]["timestamp"] for row in given] == [times[0], NOW, times[1], times[2]]
