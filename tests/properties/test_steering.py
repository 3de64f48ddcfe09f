"""Pins over random histories: views keep the rules, and what is pinned stays whole."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.errors import SteeringError
from tests.properties.rules import check_fits, check_rules, rendered
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.gated import Shortening
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import tool_session

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False, "keep_recent": 2, "compact_threshold": 0.5}
BUDGET = 1_500
slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@given(drawn=histories(20), pins=st.lists(st.integers(1, 24), min_size=1, max_size=4), cuts=st.integers(1, 6))
@slow_ok
def test_pinned_rows_stand_whole_unless_a_view_must_be_shortened(drawn, pins, cuts):
    """Rules 2, 6 and 7 with pins; what is pinned is in the view of each later compaction, word for word."""
    rows = [*tool_session(8, size=100), *drawn, *tool_session(8, size=100, start=50)]

    async def run() -> None:
        made = Managed(BUDGET, provider=Shortening, host=Recorder(session_id="drawn"), **SMALL)
        pinned: tuple[int, ...] = ()
        for at, row in enumerate(rows):
            await made.add([copy.deepcopy(row)])
            if at % cuts:
                continue
            for number in pins if not pinned and at >= 24 else ():
                with contextlib.suppress(SteeringError):
                    pinned = await made.manager.pin(number)
            compactions, view = made.host.compactions, await made.view()
            check_rules(view, rows[: at + 1])
            check_fits(view, BUDGET)
            if made.host.compactions > compactions and made.host.of("context:compaction")[-1]["strategy_level"] < 4:
                messages = [row["content"] for row in rendered(rows[: at + 1])]
                shown = [row["content"] for row in view]
                said = [messages[number - 1] for number in pinned]
                assert [text for text in said if isinstance(text, str) and text not in shown] == []
        await made.manager.close()

    asyncio.run(run())
