"""The time that rows get: ISO 8601 in UTC, only where the host gave none, and the same one for the same row."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.messages.timing import set_times, time_text, timeless
from context_summarize.testing import JsonRow
from tests.support.rows import user

NOW = time_text(1_774_000_000.25)


def timed(row: JsonRow) -> JsonRow:
    copy = dict(row)
    set_times([copy], NOW, ())
    return copy


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
