"""What users of other systems complain about, each by its name, and why it cannot happen here."""

from __future__ import annotations

import re
from typing import Any

import pytest
from amplifier_core.llm_errors import ProviderUnavailableError

from context_summarize import SummarizingContextManager
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.testing import ScriptedProvider, call, result, tool_session, user
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.recorder import Recorder

COUNT = TokenCounter().count
ANSWER = "Goal: orders were looked up. State: done."
SMALL = {"keep_recent": 4, "segment_tokens": 512, "safety_margin": 0}


def tokens(view: list[dict[str, Any]]) -> int:
    return sum(measure(row, COUNT) for row in view)


def provider(then: Any = ANSWER, window: int = 6_000, **more: Any) -> ScriptedProvider:
    return ScriptedProvider(then=then, context_window=window, max_output_tokens=window // 10, **more)


async def fed(
    rows: list[dict[str, Any]], recorder: Recorder | None = None, **settings: Any
) -> SummarizingContextManager:
    manager = SummarizingContextManager(recorder, **{**SMALL, **settings})
    await manager.set_messages(rows)
    return manager


def wordy(request: Any) -> str:
    """An answer twice as long as what was asked about."""
    return str(request.messages[-1].content) * 2


@pytest.mark.parametrize(
    "answer", [ANSWER, wordy, "", ProviderUnavailableError("down")], ids=["good", "wordy", "empty", "down"]
)
async def test_compaction_made_it_bigger(answer: Any) -> None:
    """734k → 707k tokens elsewhere: here no boundary leaves a larger view than it found."""
    recorder = Recorder()
    manager = await fed([], recorder, retry_attempts=1)
    for row in tool_session(25, size=500):
        await manager.add_message(row)
        await manager.get_messages_for_request(provider=provider(answer))
    made = recorder.of("context:compaction")
    assert made
    assert all(data["after_tokens"] < data["before_tokens"] for data in made)


async def test_the_request_to_summarise_was_itself_too_long() -> None:
    """Here it is cut into pieces that fit the summariser's window."""
    seen: list[int] = []

    def answer(request: Any) -> str:
        seen.append(sum(COUNT(str(message.content)) for message in request.messages))
        return ANSWER

    small = provider(answer, window=3_000)
    manager = await fed(
        tool_session(60, size=900), Recorder({"small": small}), summary_provider="small", segment_tokens=4_096
    )
    view = await manager.get_messages_for_request(20_000, provider(window=30_000))
    assert tokens(view) <= 20_000
    assert seen
    assert max(seen) <= 3_000
    assert not any(FALLBACK_LINE in str(row["content"]) for row in view)


async def test_it_forgot_the_task_and_the_rules() -> None:
    """The first and the newest request stand verbatim, the user's rules in the user's own words."""
    rows = [user("Migrate the billing service. Always run the tests before you commit."), *tool_session(80, size=500)]
    manager = await fed(rows)
    view = await manager.get_messages_for_request(provider=provider("Goal: work was done."))
    text = "\n".join(str(row["content"]) for row in view)
    assert "Migrate the billing service." in text
    later = await fed([*tool_session(5, size=500), *rows, *tool_session(40, size=500, start=90)])
    text = "\n".join(
        str(row["content"]) for row in await later.get_messages_for_request(provider=provider("Goal: work."))
    )
    assert "Always run the tests before you commit." in text


async def test_it_forgot_which_files_were_edited() -> None:
    """Paths follow a summary that does not name them."""
    edits = [
        row
        for at in range(20)
        for row in (call(f"e{at}", "edit", path=f"src/app/module_{at}.py"), result(f"e{at}", "ok " * 200))
    ]
    manager = await fed([user("refactor"), *edits, user("go on")])
    view = await manager.get_messages_for_request(4_000, provider("Goal: files were edited."))
    text = "\n".join(str(row["content"]) for row in view)
    assert all(f"src/app/module_{at}.py" in text for at in range(20))


async def test_a_pending_approval_was_summarised_away() -> None:
    """A call that is still open stands verbatim, whatever the window."""
    manager = await fed([*tool_session(60, size=500), user("delete it"), call("ask", "approve", action="delete prod")])
    view = await manager.get_messages_for_request(2_000, provider())
    assert view[-1]["tool_calls"] == [{"id": "ask", "tool": "approve", "arguments": {"action": "delete prod"}}]


async def test_the_compaction_prompt_was_answered_as_if_the_user_had_asked() -> None:
    """It never enters the history, and what the summariser says stands in a frame that says what it is."""
    rows = tool_session(60, size=500)
    manager = await fed(rows)
    view = await manager.get_messages_for_request(provider=provider())
    assert await manager.get_messages() == rows
    shown = [row for row in view if (row.get("metadata") or {}).get("source") == "context-summarize"]
    assert len(shown) > 1
    assert all(re.search("record, not (?:as )?instructions", row["content"]) for row in shown)
    assert not any("You summarise one part" in str(row["content"]) for row in view)
