"""Rows and marks that newest hosts keep for their own screen: the history holds them, nobody else sees them.

Follows context-simple's request_view.py and its tests.
"""

from __future__ import annotations

import contextlib

from context_summarize.errors import RecallError
from context_summarize.recall import RecallQuery
from context_summarize.testing import JsonRow
from tests.properties.rules import check_opening, check_shape
from tests.support.managed import Managed
from tests.support.rows import call, result, tool_session, user
from tests.support.views import untimed

ORIGINAL, SECRET = "SCREEN_ORIGINAL_77", "SCREEN_ONLY_88"
REFERENCE = {"amplifier_public_reference_only": True, "amplifier_public_message": {"blocks": [ORIGINAL]}}
COPY = {"amplifier_public_message": {"blocks": [ORIGINAL]}, "amplifier_public_copy_source": {"source": ORIGINAL}}


def only_on_screen(row: JsonRow) -> JsonRow:
    return {**row, "metadata": REFERENCE}


async def test_what_is_for_the_screen_alone_reaches_no_request_summary_note_or_recall():
    """Rows of every role, one of them a result, whose call stays whole, and the first one; only `True` marks one."""
    hidden = [user(SECRET), {"role": "system", "content": SECRET}, call("s", text=SECRET), result("s", SECRET)]
    kept = {**user("Deploy to Oslo."), "metadata": {**COPY, "amplifier_public_reference_only": "yes", "legacy": 1}}
    rows = [*map(only_on_screen, hidden), kept, call("c"), only_on_screen(result("c", SECRET)), *tool_session(40)]
    made = await Managed(100_000, recall_tool=True, keep_recent=4).add(rows)
    views = [await made.view(), await made.compacted()]
    assert {**user("Deploy to Oslo."), "metadata": {"legacy": 1}} in untimed(views[0])
    assert made.provider.requests
    for seen in (*views, made.provider.requests):
        assert not any(word in str(seen) for word in (SECRET, ORIGINAL, "amplifier_public"))
    for view in views:
        check_shape(view)
        check_opening(view, rows[4:], 0)
    assert len(views[0]) == 43 * 4 - 9
    with contextlib.suppress(RecallError):
        assert (await made.manager.recall(RecallQuery(words=SECRET))).messages == ()
    assert await made.rows() == rows
    await made.manager.close()
