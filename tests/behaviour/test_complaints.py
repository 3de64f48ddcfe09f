"""What users of other systems complain about, each by its name, and why it cannot happen here."""

from __future__ import annotations

from typing import Any

import pytest
from amplifier_core.llm_errors import ProviderUnavailableError

from context_summarize import SummarizingContextManager
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.testing import ScriptedProvider, tool_session
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
    manager = await fed([], recorder)
    for row in tool_session(25, size=500):
        await manager.add_message(row)
        await manager.get_messages_for_request(provider=provider(answer))
    made = recorder.of("context:compaction")
    assert made
    assert all(data["after_tokens"] < data["before_tokens"] for data in made)


async def test_the_request_to_summarise_was_itself_too_long() -> None:
    """Here its middle is left out, and what is sent fits the summariser's window."""
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
