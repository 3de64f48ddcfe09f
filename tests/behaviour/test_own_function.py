"""A provider from a function: it writes a session's summaries, its window bounds requests, SDK errors mean the same."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import httpx
import pytest

from context_summarize import ConfigError, SummarizingContextManager, provider_of
from context_summarize.formats import to_openai
from tests.support.rows import feed, tool_session

REQUEST: Any = httpx.Request("POST", "https://api.example/v1")


def error_of(name: str, status: int | None = None, headers: Any = None) -> Any:
    """An SDK's error, by `sdk.Error`. It is imported here: that takes a second, in each process that collects tests."""
    sdk, _, kind = name.partition(".")
    error = getattr(import_module(sdk), kind)
    if status is None:
        return error(request=REQUEST)
    return error("slow down", response=httpx.Response(status, headers=headers, request=REQUEST), body=None)


async def summarised(complete, sleeps=None) -> tuple[SummarizingContextManager, list]:
    """A context after a compaction, and its view."""

    async def sleep(seconds: float) -> None:
        (sleeps if sleeps is not None else []).append(seconds)

    provider = provider_of(complete, context_window=8_000, max_output_tokens=1_000)
    context = SummarizingContextManager(keep_recent=4, prefetch=False, sleep=sleep)
    await feed(context, tool_session(12, size=1_600))
    view = await context.get_messages_for_request(provider=provider)
    await context.close()
    return context, view


async def test_the_function_gets_two_rows_and_a_limit_and_its_text_is_the_summary():
    requests = []

    async def complete(rows, max_tokens):
        requests.append((rows, max_tokens))
        return "Goal: orders were looked up."

    _, view = await summarised(complete)
    assert any("Goal: orders were looked up." in str(row["content"]) for row in view)
    for rows, max_tokens in requests:
        assert [message["role"] for message in to_openai(rows)] == ["system", "user"]
        assert 0 < max_tokens <= 1_000


@pytest.mark.parametrize(
    ("error", "waited"),
    [
        (("openai.RateLimitError", 429), 7),
        (("anthropic.RateLimitError", 429), 7),
        (("openai.InternalServerError", 503), None),
        (("openai.APIStatusError", 408), None),
        (("openai.APITimeoutError", None), None),
        (("anthropic.APIConnectionError", None), None),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
async def test_a_temporary_error_of_an_sdk_is_tried_again_after_the_time_that_it_names(error, waited):
    (name, status), sleeps = error, list[float]()
    errors = [error_of(name, status, {"retry-after": str(waited)} if waited else None)]

    async def complete(rows, max_tokens):
        if errors:
            raise errors.pop()
        return "Goal: orders were looked up."

    context, _ = await summarised(complete, sleeps)
    used = await context.statistics()
    assert (used.failed, len(sleeps)) == (0, 1)
    assert waited is None or sleeps == [waited]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (("openai.AuthenticationError", 401), "(auth)"),
        (KeyError("choices"), "KeyError"),
        ({"choices": []}, "must return text, got dict"),
        (None, "empty"),
    ],
    ids=["auth", "defect", "no text", "nothing"],
)
async def test_what_no_retry_mends_gives_a_fallback_and_a_line_in_the_log(answer, says, caplog):
    caplog.set_level("DEBUG", logger="context_summarize")

    async def complete(rows, max_tokens):
        if isinstance(answer, tuple):
            raise error_of(*answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    context, _ = await summarised(complete)
    assert (await context.statistics()).fallbacks > 0
    assert says in caplog.text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"complete": "no"}, "complete must be an async function of rows and max_tokens, got 'no'"),
        ({"complete": lambda rows, max_tokens: ""}, "got <function .*await asyncio.to_thread"),
        ({"context_window": 0}, "context_window must be a number of tokens, 1 or more, got 0"),
        ({"max_output_tokens": "1k"}, "max_output_tokens must be a number of tokens, 1 or more, got '1k'"),
    ],
    ids=["complete", "synchronous", "window", "output"],
)
def test_a_wrong_argument_is_refused(given, says):
    async def complete(rows, max_tokens):
        return ""

    with pytest.raises(ConfigError, match=says):
        provider_of(**{"complete": complete, "context_window": 8_000, "max_output_tokens": 1_000, **given})
