"""The summariser: what it asks, what it asks again, what it cuts, and what it reports of a summary or of a failure."""

from __future__ import annotations

import re
import threading
from decimal import Decimal
from typing import Any

import pytest
from amplifier_core import llm_errors as errors
from amplifier_core.message_models import ChatResponse

from context_summarize.config import Config
from context_summarize.errors import SummaryUnavailable
from context_summarize.events import Outbox
from context_summarize.redaction import build_redactor
from context_summarize.summaries.call import Summarizer
from context_summarize.summaries.jobs import Job, Target
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.services import Services, Statistics
from context_summarize.testing import MemoryStore, ScriptedProvider
from context_summarize.transcript.escaping import fence_of
from tests.support.recorder import Clock

PROMPTS = load_prompts("default")
ANSWER = "Goal: find order HAT136. State: found."
TRANSCRIPT = "#1 user\nPlease find order HAT136 for mia_li_3668.\n\n#2 assistant\n" + "It was looked up. " * 200
TOKEN = "ghp_" + "Ab1" * 12
HINTS = {"store": False, "extended_thinking": False}


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def job(text: str = TRANSCRIPT, **values: Any) -> Job:
    base: dict[str, Any] = {"key": "k1", "level": 0, "source_tokens": count(text), "summary_tokens": 100}
    return Job(text=text, **{**base, **values})


def answer(text: str = ANSWER, **values: Any) -> ChatResponse:
    blocks = [{"type": "text", "text": text}]
    return ChatResponse.model_validate({"content": blocks, "finish_reason": "stop", **values})


def summarizer(clock: Clock | None = None, totals: Statistics | None = None, count: Any = count) -> Summarizer:
    clock = clock or Clock()
    services = Services(
        config=Config(),
        prompts=PROMPTS,
        store=MemoryStore(),
        outbox=Outbox(None),
        totals=totals or Statistics(),
        redact=build_redactor(True),
        count=count,
        clock=clock,
        sleep=clock.sleep,
    )
    return Summarizer(services)


def target(provider: Any, **values: Any) -> Target:
    return Target(provider, "main", **values)


async def failure(made: Summarizer, provider: Any) -> SummaryUnavailable:
    with pytest.raises(SummaryUnavailable) as caught:
        await made.make(job(), target(provider))
    return caught.value


async def test_a_request_is_as_designed():
    """Instructions; as data alone what users and tools wrote; room for an answer; nothing stored or streamed."""
    provider: Any = ScriptedProvider(then=ANSWER)
    await summarizer().make(job(), target(provider, model="small"))
    [request], fence = provider.requests, fence_of(TRANSCRIPT)
    asked = [
        ("system", PROMPTS.segment.fill(words="75", characters="475", fence=fence)),
        ("user", f"{fence}\n{TRANSCRIPT}\n{fence}"),
    ]
    assert [(message.role, message.content) for message in request.messages] == asked
    assert request.max_output_tokens == 2 * 100 + 2_000
    assert request.metadata == {"purpose": "context-summarize", "stream": False}
    assert (request.tools, request.model, request.reasoning_effort) == (None, "small", "low")
    provider.enable_response_chaining = "auto"  # such an answer is stored on the server whatever `store` says
    await summarizer().make(job(), target(provider))
    assert provider.options == [{**HINTS, "model": "small"}, {**HINTS, "enable_response_chaining": False}]


async def test_a_summary_says_how_it_was_made():
    """Key, level, sizes, who, when; what was refused has been paid for, too."""
    paid = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, "cost_usd": Decimal("0.01")}
    script: list[Any] = [answer("", usage=paid), errors.ProviderUnavailableError("x"), answer(usage=paid)]
    totals = Statistics()
    made = await summarizer(totals=totals).make(job(), target(ScriptedProvider(script), model="small"))
    assert (made.key, made.level, made.text, made.fallback) == ("k1", 0, ANSWER, False)
    assert (made.provider, made.model) == ("main", "small")
    assert (made.tokens, made.source_tokens) == (count(ANSWER), count(TRANSCRIPT))
    assert made.usage == {"input_tokens": 20, "output_tokens": 6, "attempts": 3}
    assert (made.cost_usd, totals.cost_usd) == ("0.02", "0.02")
    assert (totals.calls, totals.input_tokens, totals.output_tokens) == (3, 20, 6)


@pytest.mark.parametrize(
    ("told", "model"),
    [({"model": "m-1"}, "m-1"), ({"metadata": {"model": "m-2"}}, "m-2"), ({"model": 5}, "asked"), ({}, "asked")],
)
async def test_the_models_name_is_read_back(told, model):
    """As attribute or in the metadata; what is no text is not believed."""
    provider = ScriptedProvider([lambda request: answer(**told)])
    assert (await summarizer().make(job(), target(provider, model="asked"))).model == model


@pytest.mark.parametrize(
    ("error", "kind", "calls", "permanent"),
    [
        (errors.QuotaExceededError("spent"), "quota", 1, True),
        (errors.AuthenticationError("401"), "auth", 1, True),
        (errors.NotFoundError("no model"), "not_found", 1, True),
        (errors.ConfigurationError("no key"), "configuration", 1, True),
        (errors.RateLimitError("slow"), "rate_limit", 3, False),
        (errors.RateLimitError("slow", retryable=False), "rate_limit", 1, False),
        (errors.ContentFilterError("blocked"), "refusal", 1, False),
        (errors.AbortError("aborted"), "aborted", 1, False),
        (errors.LLMTimeoutError("late"), "timeout", 3, False),
        (TimeoutError("late"), "timeout", 3, False),
        (errors.ProviderUnavailableError("503"), "unavailable", 3, False),
        (errors.LLMError("odd"), "unavailable", 1, False),
        (ConnectionResetError("reset"), "connection", 3, False),
        (errors.ContextLengthError("too many"), "too_large", 4, False),
        (errors.InvalidRequestError("the prompt is TOO LONG"), "too_large", 4, False),
        (errors.InvalidRequestError("a wrong request"), "invalid_request", 2, False),
        (ValueError(f"no {TOKEN} {'x' * 1_000}"), "error", 1, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_each_error_has_its_word_and_its_treatment(error, kind, calls, permanent):
    """By the provider's own mark of what a retry may mend; the report is short and holds no secret."""
    clock, provider = Clock(), ScriptedProvider(then=error)
    found = await failure(summarizer(clock), provider)
    assert (found.kind, found.permanent, found.attempts, provider.calls) == (kind, permanent, calls, calls)
    assert str(found) == f"{type(error).__name__}: {str(error).replace(TOKEN, '[redacted: GitHub token]')}"[:500]
    assert len(clock.slept) == (2 if calls == 3 else 0)


def slow(retry_after: float) -> Exception:
    return errors.RateLimitError("slow", retry_after=retry_after)


async def test_retry_after_is_waited_no_more_and_no_less():
    """Less than nothing counts as nothing; more than two minutes are handed on: the summary is late by then anyway."""
    clock = Clock()
    await summarizer(clock).make(job(), target(ScriptedProvider([slow(7.5), slow(-3), ANSWER])))
    assert clock.slept == [7.5, 0]
    clock, provider = Clock(), ScriptedProvider(then=slow(121))
    found = await failure(summarizer(clock), provider)
    assert (found.kind, found.retry_in_s, provider.calls, clock.slept) == ("rate_limit", 121, 1, [])
    await summarizer(clock).make(job(), target(ScriptedProvider([slow(120), ANSWER])))
    assert clock.slept == [120]


DOWN = errors.ProviderUnavailableError("503\nfor password=Kk33neu44x")


async def test_five_failures_in_a_row_begin_a_pause_that_doubles_up_to_ten_minutes(caplog):
    """It is told with its reason, and ends the attempts. After a success the next outage is new."""
    clock, provider = Clock(), ScriptedProvider([*[DOWN] * 4, ANSWER, *[DOWN] * 11, ANSWER], then=DOWN)
    made = summarizer(clock)
    assert (await failure(made, provider)).attempts == 3
    assert (await made.make(job(), target(provider))).usage["attempts"] == 2
    assert [(await failure(made, provider)).attempts for _ in range(3)] == [3, 2, 0]
    [told] = [record.getMessage() for record in caplog.records if "several times" in record.getMessage()]
    assert "pause: ProviderUnavailableError: 503 for password=[redacted" in told
    for pause in (60, 120, 240, 480, 600, 600):
        found = await failure(made, provider)
        assert (found.kind, found.attempts, round(found.retry_in_s or 0)) == ("breaker_open", 0, pause)
        clock.time += pause
        assert (await failure(made, provider)).attempts == 1
    clock.time += 600
    await made.make(job(), target(provider))
    assert (await failure(made, provider)).attempts == 3


LASTING = [
    errors.NotFoundError("404"),
    errors.AuthenticationError("401"),
    errors.AccessDeniedError("403"),
]


@pytest.mark.parametrize("error", LASTING, ids=lambda error: str(error))
async def test_an_error_that_does_not_go_away_pauses_provider_and_model_for_the_session(error):
    """An answer of the same provider and model to the host is worth one probe; other models go on, and are no sign."""
    clock, provider = Clock(), ScriptedProvider(then=error)
    made = summarizer(clock)
    asked, other = target(provider, model="small"), target(ScriptedProvider(then=ANSWER), model="large")
    with pytest.raises(SummaryUnavailable):
        await made.make(job(), asked)
    calls = provider.calls
    clock.time += 1_000_000
    for model in ("large", None):
        made.answered_elsewhere("main", model)
        assert made.is_paused(asked)
    await made.make(job(), other)
    for _ in range(3):
        made.answered_elsewhere("main", "small")
        with pytest.raises(SummaryUnavailable) as caught:
            await made.make(job(), asked)
    assert (caught.value.kind, caught.value.retry_in_s, provider.calls) == ("breaker_open", None, 2 * calls)
    made.forget_failures()
    assert not made.is_paused(asked)


@pytest.mark.parametrize(
    "error",
    [
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "Model 'gpt-5.5-pro' requires reasoning.effort in {'medium', 'high', 'xhigh'}; got 'low'.",
        "max_tokens is too large: 8400. This model supports at most 4096 completion tokens",
    ],
)
async def test_a_model_that_refuses_a_hint_is_asked_without_any_at_once_and_from_then_on(error):
    """As the openai provider's models refuse them. What keeps an answer off the server stays."""
    clock, provider = Clock(), ScriptedProvider([errors.InvalidRequestError(error)], then=ANSWER)
    made = summarizer(clock)
    assert (await made.make(job(), target(provider))).usage["attempts"] == 2
    assert (await made.make(job(key="k2"), target(provider))).usage["attempts"] == 1
    asked = [(request.reasoning_effort, request.max_output_tokens) for request in provider.requests]
    assert asked == [("low", 2_200), (None, None), (None, None)]
    assert provider.options == [HINTS] * 3
    assert clock.slept == []


NUMBERS = "".join(f"{number:07d} " for number in range(4_000))
"""8,000 tokens in which each place is told from all others."""
NOTE = re.compile(r"\[… ([\d,]+) of 32,000 characters left out …\]")


async def test_what_does_not_fit_the_window_is_cut_in_its_middle_before_it_is_sent():
    """Head and tail are shown; what is missing is named with its size."""
    provider: Any = ScriptedProvider([ANSWER])
    made = await summarizer().make(job(NUMBERS), target(provider, window=6_000))
    [request] = provider.requests
    assert sum(count(message.content) for message in request.messages) + request.max_output_tokens <= 6_000
    head, size, tail = NOTE.split(str(request.messages[1].content).split("\n", 1)[1].rsplit("\n", 1)[0])
    assert NUMBERS.startswith(head.strip())
    assert NUMBERS.endswith(tail.lstrip())
    assert len(head) > len(tail) > 1_000
    assert int(size.replace(",", "")) == 32_000 - len(head.rstrip("\n")) - len(tail.lstrip("\n"))
    assert (made.source_tokens, made.tokens) == (8_000, count(made.text))


async def test_an_answer_that_is_far_too_long_is_cut_to_whole_sentences_in_a_thread():
    """Four times the length that was asked for stands: a model that rambles fills no view."""
    in_loop = set[bool]()

    def counting(text: str) -> int:
        in_loop.add(threading.current_thread() is threading.main_thread() and len(text) > 100_000)
        return count(text)

    told = "".join(f"Order {at} is on the way to {at * 7}, by cart {at * 13}. " for at in range(20_000))
    asked = job("word " * 200_000, source_tokens=300_000, summary_tokens=400)
    made = await summarizer(count=counting).make(asked, target(ScriptedProvider([told])))
    assert 1_400 < made.tokens <= 1_600
    assert told.startswith(made.text)
    assert made.text.endswith(".")
    assert in_loop == {False}
