"""What a replay tells: sizes, compactions, calls, and the checks of every request."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import AsyncMock

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.replay import replay
from context_summarize.testing import ScriptedProvider
from tests.support.rows import assistant, result, tool_session, user


def scripted(**options: Any) -> ScriptedProvider:
    return ScriptedProvider(context_window=8_000, max_output_tokens=1_000, **options)


async def test_a_session_that_does_not_fit_is_told_compaction_by_compaction() -> None:
    rows, provider, seen = tool_session(60, size=800), scripted(), list[int]()

    told = await replay(rows, provider, progress=seen.append)

    assert told.failed is None
    assert len(told.compactions) >= 3
    assert all(line.before_tokens > line.after_tokens > 0 for line in told.compactions)
    assert all(rows[line.row - 1]["role"] == "assistant" for line in told.compactions)
    assert {line.reason for line in told.compactions} == {"threshold"}
    assert told.provider_calls == provider.calls == told.made_summaries > 0
    assert told.provider_input_tokens > told.provider_output_tokens > 0
    assert 0.5 < told.stable_share < 1.0
    assert told.largest_view <= told.budget < told.history_tokens
    after = {request.row: request.tokens for request in told.requests}
    assert all(after[line.row] == line.after_tokens for line in told.compactions)
    spans = [row["metadata"]["messages"] for row in told.compactions[-1].made_rows if "messages" in row["metadata"]]
    assert spans[0][0] == 1
    assert spans[-1][1] < told.compactions[-1].row
    assert seen == list(range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("view", "kept", "name", "says"),
    [
        ([user("a")], [user("A"), assistant("b")], "History intact", "message 1 is not what was added"),
        ([user("a")], [user("a")], "History intact", "2 rows were added, 1 are kept"),
        ([user("a"), result("1")], None, "Pairs intact", "before message 2, view row 1: result '1' without its call"),
        ([assistant("b")], None, "User first", "the request before message 2 does not open with a user message"),
        ([user("a"), {"role": "assistant", "content": None}], None, "Valid rows", "view row 1: 2 validation errors"),
        ([user("x " * 2_000)], None, "Within budget", "holds 2,00[0-9] tokens, the budget is 1,000"),
    ],
)
async def test_a_broken_promise_fails_its_check_with_the_first_problem(
    monkeypatch: pytest.MonkeyPatch, view: list[Any], kept: list[Any] | None, name: str, says: str
) -> None:
    """The checks look at rows alone: a manager that breaks a promise is found out."""
    fed = [user("a"), assistant("b")]
    monkeypatch.setattr(SummarizingContextManager, "get_messages_for_request", AsyncMock(return_value=view))
    monkeypatch.setattr(SummarizingContextManager, "get_messages", AsyncMock(return_value=kept or fed))

    told = await replay(fed, scripted(), token_budget=1_000)

    assert told.failed is not None
    assert told.failed.name == name
    assert told.failed.first is not None
    assert re.search(says, told.failed.first)
    assert (told.problem or "").startswith(f"FAILED: {name}: ")
