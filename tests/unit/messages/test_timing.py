"""The time that rows get: only where the host gave none."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize import SummarizingContextManager
from tests.support.rows import user
from tests.support.views import untimed

TIME = "2026-02-06T10:00:00.123Z"


@pytest.mark.parametrize(
    ("marks", "is_timed"),
    [
        ({"metadata": {"timestamp": TIME}}, False),
        ({"timestamp": TIME}, False),  # beside the metadata, as older hosts write it
        ({"metadata": ["no place for a time"]}, False),
        ({"metadata": None}, True),
        ({"metadata": {}}, True),
        ({"metadata": {"timestamp": None}}, True),
        ({"metadata": {"source": "hook"}}, True),
    ],
)
async def test_a_time_and_other_marks_of_the_hosts_stay_as_they_are(marks: dict[str, Any], is_timed: bool) -> None:
    manager = SummarizingContextManager()
    row = {**user("Hello."), **marks}
    given = {**row, "metadata": dict(marks["metadata"])} if isinstance(marks.get("metadata"), dict) else dict(row)
    await manager.add_message(row)
    [kept] = await manager.get_messages()
    assert row == given, "what the host passed is the host's"
    assert (kept != row) is is_timed
    assert untimed([kept]) == untimed([row])
