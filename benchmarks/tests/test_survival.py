"""Survival: items are planted in the first part of the session, and looked for after each compaction alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.survival import KINDS, Enough, Watch, planted, stands
from benchmarks.tokens import Row, said


def test_what_a_view_holds_is_counted_by_kind_after_each_compaction_until_ten_are_made() -> None:
    session, items = planted(0, copies=1)
    assert planted(0, copies=1) == (session, items)
    start, end = "\n".join(map(said, session.rows[:230])), "\n".join(map(said, session.rows[230:]))
    assert all(stands(item, start) and not stands(item, end) for item in items)
    values = [said(row) for row in session.rows if any(value and value in said(row) for _, _, value in items)]
    short = [{"role": "user", "content": text} for text in values]
    watch = Watch(items)
    views: list[Sequence[Row]] = [session.rows[:200], session.rows[:230], short, [*short, session.rows[230]]]
    for view in views:
        watch(0, view)
    assert watch.kept == {**{kind: [pytest.approx(0, abs=0.2)] for kind in KINDS}, "value": [1]}
    for again in [*8 * (session.rows[:230], short), session.rows[:230]]:
        watch(0, again)
    with pytest.raises(Enough):
        watch(0, short)
