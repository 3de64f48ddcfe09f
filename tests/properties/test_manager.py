"""Segments and pins over random histories of every shape, through the whole manager."""

from __future__ import annotations

import contextlib
import copy
import itertools
import re
from typing import Any

from amplifier_core.message_models import ChatRequest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize.errors import SteeringError
from context_summarize.testing import ScriptedProvider
from tests.properties.rules import check_fits, check_rules
from tests.properties.rules import rendered as messages_of
from tests.properties.strategies import histories
from tests.support.effort import EXAMPLES
from tests.support.gated import Shortening
from tests.support.inside import rendered
from tests.support.managed import Managed
from tests.support.rows import tool_session
from tests.support.transcripts import transcript
from tests.support.views import nodes

slow_ok = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

SEGMENT = 64


async def summarised(history: list[dict[str, Any]], **given: Any) -> tuple[list[dict[str, Any]], list[ChatRequest]]:
    """(the marks of the segments of a session of which nothing stays verbatim, what its provider was asked)."""
    parts = itertools.count(1)

    def provider() -> ScriptedProvider:
        return ScriptedProvider(then=lambda _: f"Goal: part {next(parts)}.", context_window=200_000)

    settings = {"keep_recent": 0, "max_concurrency": 1, "segment_tokens": SEGMENT, "prefetch": False, **given}
    made = await Managed(10**6, provider=provider, **settings).take(history)
    await made.view()
    view = await made.compacted()
    await made.manager.close()
    return [row["metadata"] for row in nodes(view)], made.provider.requests


@given(rows=histories(), more=histories(8))
@slow_ok
async def test_appending_rows_never_changes_a_closed_segment(rows, more):
    """Rule 13: the segments of a history are a prefix of those of any longer one, with the same keys."""
    (short, _), (long, _) = await summarised(rows), await summarised([*rows, *more])
    # What lies behind the last full segment is a short one. Where a compaction would free nothing, none runs.
    common = max(0, min(len(short), len(long)) - 1)
    assert long[:common] == short[:common]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", re.sub(r"\\u[0-9a-f]{4}|\\[nrt]|call_id|[{}\":,\[\]]", " ", text)))


@given(rows=histories())
@slow_ok
async def test_every_rendered_row_of_a_segment_is_shown_to_the_summariser(rows):
    """Rule 12: rows are shown whole, or named as shortened with their size; hook rows are not shown."""
    segments, asked = await summarised(rows, redact=False)
    told = rendered(rows)
    # Segments that say the same have one key, and are asked for once.
    parts = {mark["key"]: told[mark["messages"][0] - 1 : mark["messages"][1]] for mark in segments}
    for request, part in zip(asked, parts.values(), strict=True):
        shown = transcript(request)
        assert [header.split()[:2] for header, _ in shown] == [
            [f"[m{number}]", row.role] for number, row in enumerate(part, 1)
        ]
        for (_, said), whole in zip(shown, part, strict=True):
            if said != whole.text and not re.search(r"left out|\(.*as in \[m\d+\]\)", said):
                assert words(whole.text) <= words(said) | words("(empty)"), "each word of a call stands in its lines"
    assert not any(row.text == "hooked" for row in told)


@given(drawn=histories(20), pins=st.lists(st.integers(1, 24), min_size=1, max_size=4), cuts=st.integers(1, 6))
@slow_ok
async def test_pinned_rows_stand_whole_unless_a_view_must_be_shortened(drawn, pins, cuts):
    """Rules 2, 6 and 7 with pins; what is pinned is in the view of each later compaction, word for word."""
    rows = [*tool_session(8, size=100), *drawn, *tool_session(8, size=100, start=50)]
    settings: dict[str, Any] = {"segment_tokens": SEGMENT, "keep_recent": 2, "compact_threshold": 0.5}
    made = Managed(1_500, provider=Shortening, prefetch=False, **settings)
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
        check_fits(view, 1_500)
        if made.host.compactions > compactions and made.host.of("context:compaction")[-1]["strategy_level"] < 4:
            messages = [row["content"] for row in messages_of(rows[: at + 1])]
            shown = [row["content"] for row in view]
            said = [messages[number - 1] for number in pinned]
            assert [text for text in said if isinstance(text, str) and text not in shown] == []
    await made.manager.close()
