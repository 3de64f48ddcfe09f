"""The manager: the system prompt, who writes summaries, windows that change, `compact()`, and wrong arguments."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from amplifier_core.llm_errors import NotFoundError
from amplifier_core.message_models import ChatRequest

from context_summarize import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.managed import Managed
from tests.support.recorder import Recorder
from tests.support.rows import hook, tool_session, user
from tests.support.views import nodes, size, untimed

LARGE = 10**6


def session(budget: int = LARGE, **given: Any) -> Managed:
    return Managed(budget, **{"segment_tokens": 64, "prefetch": False, "keep_recent": 4, **given})


async def test_the_factory_of_the_system_prompt_is_called_once_a_view_and_costs_no_request_where_it_raises(caplog):
    """Its prompt comes first, and hides stored system rows, hook rows aside; its last prompt holds where it raises."""
    answers: list[Any] = [RuntimeError("no"), "PROMPT", asyncio.CancelledError("an inner task has ended"), None]

    async def factory() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    made = await session().add([{"role": "system", "content": "stored"}, hook("note"), user("hi")])
    await made.manager.set_system_prompt_factory(factory)
    for first in ("stored", "PROMPT", "PROMPT", "stored"):
        view = await made.view()
        assert [row["content"] for row in view] == [first, "note", "hi"]
        assert await made.manager.get_token_count() == size(view)
    assert answers == []
    assert sum("system prompt factory failed" in record.message for record in caplog.records) == 2


def refusing_other_models(request: ChatRequest) -> str:
    if request.model is not None:
        raise NotFoundError(f"no model {request.model}")
    return answer(request)


async def test_a_fallback_provider_is_not_asked_for_the_model_of_another(caplog):
    """It does not know the name, and would refuse every summary; the log says both."""
    main = ScriptedProvider(then=refusing_other_models, context_window=6_000, max_output_tokens=500)
    made = session(900, host=Recorder({"main": main}), summary_provider="smal", summary_model="tiny-1")
    await made.add(tool_session(12))
    await made.manager.get_messages_for_request(900)
    assert {request.model for request in main.requests} == {None}
    assert made.host.of("context-summarize:failure") == []
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "'smal' is not mounted (mounted: main); the session's own provider writes" in record.getMessage()
    assert "without summary_model 'tiny-1'" in record.getMessage()


async def test_without_a_host_the_name_of_the_summariser_means_the_provider_of_the_request():
    made = SummarizingContextManager(keep_recent=4, summary_provider="main", summary_model="tiny-1")
    await made.set_messages(tool_session(12))
    provider = ScriptedProvider(then=answer, name="main")
    assert nodes(await made.get_messages_for_request(900, provider))
    assert {request.model for request in provider.requests} == {"tiny-1"}
    await made.close()


async def test_a_window_that_grows_again_shows_summaries_again():
    made = await session(keep_recent=0, summary_share=1.0).add(tool_session(3))
    assert "no room for a summary" in str(await made.view(110))
    await made.add(tool_session(18, start=3))
    assert "no room for a summary" not in str(await made.view(2_500))


async def test_compact_summarises_down_to_keep_recent_and_says_what_it_saved():
    """Whatever it frees, and below the threshold; the newest part as a segment that ends early."""
    made = await session(segment_tokens=512).add(tool_session(12))
    await made.view()
    before = await made.manager.get_token_count()
    saved = await made.manager.compact()
    after = await made.manager.get_token_count()
    assert saved == before - after > 0
    view = await made.view()
    assert size(view) == after
    assert nodes(view)[-1]["metadata"]["messages"][1] == 44
    assert untimed(view)[-4:] == tool_session(12)[-4:]


BUDGET = "token_budget must be .*, got "
TEXTS = "must be a list of the reminders' texts, got "
QUERY = "query must be a RecallQuery.*; got "


@pytest.mark.parametrize(
    ("method", "given", "error", "says"),
    [
        ("get_messages_for_request", {"token_budget": -1}, ValueError, f"{BUDGET}-1"),
        ("get_messages_for_request", {"token_budget": "x"}, TypeError, f"{BUDGET}'x'"),
        ("get_messages_for_request", {"token_budget": 1e5}, TypeError, f"{BUDGET}100000.0"),
        ("get_messages_for_request", {"token_budget": True}, TypeError, f"{BUDGET}True"),
        ("request_retention", {"retain_contents": [], "token_budget": -1}, ValueError, f"{BUDGET}-1"),
        ("request_retention", {"retain_contents": 5}, TypeError, f"{TEXTS}5"),
        ("request_retention", {"retain_contents": "a"}, TypeError, f"{TEXTS}'a'"),
        ("set_system_prompt_factory", {"factory": 5}, TypeError, "factory must be an async function .*; got 5"),
        ("recall", {"query": "1-3"}, TypeError, f"{QUERY}'1-3'"),
        ("recall", {"query": {"words": "x"}}, TypeError, QUERY + r"\{'words': 'x'\}"),
    ],
)
async def test_a_wrong_argument_is_told_with_what_was_expected_and_changes_nothing(method, given, error, says):
    made = await session().add(tool_session(2))
    with pytest.raises(error, match=says):
        await getattr(made.manager, method)(**given)
    assert untimed(await made.view()) == tool_session(2)


async def test_a_history_that_begins_anew_shows_no_reminder_of_the_one_before():
    made = await session().add([user("Go.")])
    assert "RULE-9" in str(await made.manager.request_retention(retain_contents=["RULE-9"]))
    await made.manager.clear()
    assert "RULE-9" not in str(await (await made.add([user("Anew.")])).view(40_000))
