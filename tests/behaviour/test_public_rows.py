"""Rows and marks that newest hosts keep for their own screen: the history holds them, nobody else sees them.

Follows context-simple's request_view.py and its tests.
"""

from __future__ import annotations

from context_summarize import SummarizingContextManager
from context_summarize.errors import RecallError
from context_summarize.recall import RecallQuery
from context_summarize.testing import JsonRow, ScriptedProvider
from tests.properties.rules import check_opening, check_shape
from tests.support.gated import answer
from tests.support.rows import call, feed, result, tool_session, user
from tests.support.views import untimed

ORIGINAL, SECRET = "SCREEN_ORIGINAL_77", "SCREEN_ONLY_88"
REFERENCE = {"amplifier_public_reference_only": True, "amplifier_public_message": {"blocks": [ORIGINAL]}}
COPY = {"amplifier_public_message": {"blocks": [ORIGINAL]}, "amplifier_public_copy_source": {"source": ORIGINAL}}


def only_on_screen(row: JsonRow) -> JsonRow:
    return {**row, "metadata": REFERENCE}


async def test_what_is_for_the_screen_alone_reaches_no_request_summary_note_or_recall() -> None:
    """Rows of every role, one of them a result, whose call stays whole, and the first one; only `True` marks one."""
    hidden = [user(SECRET), {"role": "system", "content": SECRET}, call("s", text=SECRET), result("s", SECRET)]
    kept = {**user("Deploy to Oslo."), "metadata": {**COPY, "amplifier_public_reference_only": "yes", "legacy": 1}}
    rows = [*map(only_on_screen, hidden), kept, call("c"), only_on_screen(result("c", SECRET)), *tool_session(40)]
    made, provider = SummarizingContextManager(recall_tool=True, keep_recent=4), ScriptedProvider(then=answer)
    await feed(made, rows)
    views = [await made.get_messages_for_request(100_000, provider)]
    assert next(row["metadata"] for row in views[0] if row["content"] == "Deploy to Oslo.") == {"legacy": 1}
    await made.compact()
    views.append(await made.get_messages_for_request(100_000, provider))

    assert provider.requests
    for seen in (*views, provider.requests):
        assert not any(word in str(seen) for word in (SECRET, ORIGINAL, "amplifier_public"))
    for view in views:
        check_shape(view)
        check_opening(view, rows[4:], 0)
    assert len(views[0]) == 43 * 4 - 9
    try:
        found = (await made.recall(RecallQuery(words=SECRET))).messages
    except RecallError:
        found = ()
    assert found == ()
    assert untimed(await made.get_messages()) == rows
    await made.close()


async def test_every_row_of_a_view_has_metadata() -> None:
    """A provider warns of a row without, and sets no breakpoint for its prompt cache."""

    async def prompt() -> str:
        return "You are a clerk.\n<system-reminder>It is noon.</system-reminder>"

    made = SummarizingContextManager(keep_recent=4)
    await made.set_system_prompt_factory(prompt)
    await feed(
        made, [call("lost"), *tool_session(30), {**user("Wait."), "metadata": [1]}, {**user("Go."), "metadata": None}]
    )
    await made.compact()
    await made.add_message({"role": "tool", "tool_call_id": "h", "content": "x", "ephemeral": True})
    view = await made.get_messages_for_request(100_000)
    assert [row for row in view if not isinstance(row.get("metadata"), dict)] == []
    assert "timestamp" not in str(view)
