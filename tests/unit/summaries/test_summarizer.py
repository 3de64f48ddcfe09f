"""The summariser: its request, retries, the gate's second try, pieces of what is too large, and what it reports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from amplifier_core.llm_errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    ProviderUnavailableError,
    RateLimitError,
)
from amplifier_core.message_models import ChatRequest, ChatResponse

from context_summarize.config import Config
from context_summarize.errors import SummaryUnavailable
from context_summarize.summaries.allowance import LEAST_ROOM
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.summarizer import TOTAL_DEADLINE, Summarizer, own_call
from context_summarize.summaries.validation import REASONS
from context_summarize.testing import ScriptedProvider
from context_summarize.transcript.fences import fence_of, numbered
from tests.support.recorder import Clock
from tests.support.services import services

PROMPTS = load_prompts("default")
ANSWER = "Goal: find order HAT136. State: found."
TRANSCRIPT = "#1 user\nPlease find order HAT136 for mia_li_3668.\n\n#2 assistant\n" + "It was looked up. " * 200


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def job(*parts: str, **values: Any) -> Job:
    parts = parts or (TRANSCRIPT,)
    base: dict[str, Any] = {
        "key": "k1",
        "level": 0,
        "parts": parts,
        "source_tokens": count("\n\n".join(parts)),
        "summary_tokens": 100,
    }
    return Job(**{**base, **values})


def answer(text: str = ANSWER, **values: Any) -> ChatResponse:
    blocks = [{"type": "text", "text": text}]
    return ChatResponse.model_validate({"content": blocks, "finish_reason": "stop", **values})


def summarizer(clock: Clock | None = None, **settings: Any) -> Summarizer:
    clock = clock or Clock()
    shared = services(Config(**settings), count, clock=clock, sleep=clock.sleep)
    return Summarizer(shared, now=lambda: 12.5)


def target(provider: Any, **values: Any) -> Target:
    return Target(provider, "main", **values)


def rows_of(request: ChatRequest) -> tuple[str, str]:
    """(system, user) text of a request of ours."""
    assert [message.role for message in request.messages] == ["system", "user"]
    system, user = (message.content for message in request.messages)
    assert isinstance(system, str)
    assert isinstance(user, str)
    return system, user


async def failure(made: Summarizer, provider: Any, wanted: Job | None = None, **values: Any) -> SummaryUnavailable:
    with pytest.raises(SummaryUnavailable) as caught:
        await made.make(wanted or job(), target(provider, **values))
    return caught.value


class TestRequest:
    async def test_it_is_as_designed(self) -> None:
        """[system, user], little room at first, purpose, and the flag that keeps it off the user's screen."""
        provider = ScriptedProvider([ANSWER])
        await summarizer().make(job(), target(provider))
        [request] = provider.requests
        assert [message.role for message in request.messages] == ["system", "user"]
        assert request.max_output_tokens == LEAST_ROOM
        assert request.metadata == {"purpose": "context-summarize", "stream": False}
        assert (request.tools, request.model, request.reasoning_effort) == (None, None, "low")
        assert provider.options == [{"store": False, "extended_thinking": False}]

    async def test_the_transcript_is_fenced_in_the_user_row_and_nowhere_else(self) -> None:
        """Rule 11: what users and tools wrote is data, never instructions."""
        provider = ScriptedProvider([ANSWER])
        await summarizer().make(job(), target(provider))
        system, user = rows_of(provider.requests[0])
        fence = fence_of(TRANSCRIPT)
        assert user == f"{fence}\n{TRANSCRIPT}\n{fence}"
        assert fence in system
        assert "HAT136" not in system
        assert system == PROMPTS.segment.fill(words="75", fence=fence)

    async def test_the_model_is_asked_for_in_both_places(self) -> None:
        """Some providers ignore the request's model, so it is a keyword as well."""
        provider = ScriptedProvider([ANSWER])
        await summarizer().make(job(), target(provider, model="small"))
        assert provider.requests[0].model == "small"
        assert provider.options[0]["model"] == "small"

    async def test_a_merge_is_asked_with_the_merge_template(self) -> None:
        """How many there are is said."""
        provider = ScriptedProvider([ANSWER])
        parts = tuple(numbered([f"one {TRANSCRIPT}", f"two {TRANSCRIPT}"]).split("\n\n## "))
        await summarizer().make(job(*parts, level=1), target(provider))
        system, user = rows_of(provider.requests[0])
        assert system == PROMPTS.merge.fill(words="75", fence=fence_of("\n\n".join(parts)), count="2")
        assert user.count("# Summary") >= 1

    async def test_a_focus_stands_before_the_fence(self) -> None:
        """compact(focus) shapes the request, on one line."""
        provider = ScriptedProvider([ANSWER])
        await summarizer().make(job(focus="the\n  refund"), target(provider))
        system, user = rows_of(provider.requests[0])
        assert user.startswith("What follows should keep above all: the refund\n\n=== transcript ")
        assert "refund" not in system

    async def test_what_a_template_is_filled_with_comes_from_the_key_alone(self) -> None:
        """Two providers with other windows and models are asked in the same words."""
        one, two = ScriptedProvider([ANSWER]), ScriptedProvider([ANSWER])
        await summarizer().make(job(), target(one))
        await summarizer().make(job(source_tokens=9_000), Target(two, "other", "m", 50_000))
        assert rows_of(one.requests[0]) == rows_of(two.requests[0])

    async def test_room_stays_within_a_small_window(self) -> None:
        """A quarter of the window, at least twice the summary."""
        for window, room in ((4_000, 1_000), (400, 200), (40_000, 2_400)):
            provider = ScriptedProvider(then=ANSWER)
            await summarizer().make(job("short text " * 30, reasons=True), target(provider, window=window))
            assert provider.requests[0].max_output_tokens == room


class TestSummary:
    async def test_it_says_how_it_was_made(self) -> None:
        """Key, level, sizes, who, when."""
        made = await summarizer().make(job(), target(ScriptedProvider([ANSWER]), model="small"))
        assert (made.key, made.level, made.text, made.fallback) == ("k1", 0, ANSWER, False)
        assert (made.provider, made.model, made.created) == ("main", "small", 12.5)
        assert (made.tokens, made.source_tokens) == (count(ANSWER), count(TRANSCRIPT))

    async def test_the_models_name_is_read_back(self) -> None:
        """As attribute or in the metadata; what is no text is not believed."""
        for response, name in (
            (answer(model="small-2024"), "small-2024"),
            (answer(metadata={"model": "small-2025"}), "small-2025"),
            (answer(model=5), "asked"),
            (answer(metadata={}), "asked"),
        ):
            made = await summarizer().make(job(), target(ScriptedProvider([response]), model="asked"))
            assert made.model == name

    async def test_usage_of_all_attempts_is_summed(self) -> None:
        """What was refused has been paid for, too."""
        paid = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, "cost_usd": Decimal("0.01")}
        script: list[Any] = [answer("", usage=paid), ProviderUnavailableError("x"), answer(usage=paid)]
        made = await summarizer().make(job(), target(ScriptedProvider(script)))
        assert made.usage == {"input_tokens": 20, "output_tokens": 6, "attempts": 3}
        assert made.cost_usd == "0.02"


class TestOwnCall:
    async def test_our_calls_are_marked_while_they_last(self) -> None:
        """True inside, false after, whether it went well or not."""
        inside: list[bool] = []

        def look(request: ChatRequest) -> str:
            inside.append(own_call.get())
            if len(inside) == 2:
                raise AuthenticationError("no")
            return ANSWER

        provider = ScriptedProvider(then=look)
        await summarizer().make(job(), target(provider))
        assert not own_call.get()
        await failure(summarizer(), provider)
        assert not own_call.get()
        assert inside == [True, True]


def slow() -> tuple[Clock, ScriptedProvider]:
    """A provider whose answer takes as long as a key may, by the clock that comes with it."""
    clock = Clock()

    def answered(request: ChatRequest) -> str:
        clock.time += TOTAL_DEADLINE
        return ANSWER

    return clock, ScriptedProvider(then=answered)


class TestRetries:
    @pytest.mark.parametrize(
        "error",
        [
            ProviderUnavailableError("503"),
            ConnectionResetError("reset"),
            type("ReadTimeout", (type("TransportError", (Exception,), {}),), {})("httpx"),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_what_may_go_away_is_asked_again(self, error: Exception) -> None:
        """Retryable errors of the host, timeouts, connection loss."""
        clock, provider = Clock(), ScriptedProvider([error, ANSWER])
        made = await summarizer(clock).make(job(), target(provider))
        assert made.text == ANSWER
        assert made.usage["attempts"] == provider.calls == 2
        assert len(clock.slept) == 1

    @pytest.mark.parametrize(
        ("error", "kind", "permanent"),
        [
            (AuthenticationError("401"), "auth", True),
            (RateLimitError("slow", retryable=False), "rate_limit", False),
            (json.JSONDecodeError("bad", "x", 0), "error", False),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
    )
    async def test_what_no_retry_mends_is_asked_once(self, error: Exception, kind: str, permanent: bool) -> None:
        """One word of why, and whether it can ever mend."""
        clock, provider = Clock(), ScriptedProvider([error])
        found = await failure(summarizer(clock), provider)
        assert (found.kind, found.permanent, found.attempts) == (kind, permanent, 1)
        assert provider.calls == 1
        assert clock.slept == []
        assert str(found).startswith(type(error).__name__)

    async def test_attempts_are_bounded_and_waits_grow(self) -> None:
        """retry_attempts in all, exponential with jitter."""
        clock, provider = Clock(), ScriptedProvider(then=ProviderUnavailableError("503"))
        found = await failure(summarizer(clock, retry_attempts=4), provider)
        assert (found.kind, found.attempts, provider.calls) == ("unavailable", 4, 4)
        assert [least <= slept <= least + 1 for least, slept in zip((1, 2, 4), clock.slept, strict=True)] == [True] * 3

    async def test_retry_after_is_honoured(self) -> None:
        """What the provider asks for is waited, no more and no less."""
        clock = Clock()
        script: list[Any] = [RateLimitError("slow", retry_after=7.5), RateLimitError("slow", retry_after=0), ANSWER]
        await summarizer(clock).make(job(), target(ScriptedProvider(script)))
        assert clock.slept == [7.5, 0]

    async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(self) -> None:
        """It is handed on instead."""
        clock, provider = Clock(), ScriptedProvider(then=RateLimitError("slow", retry_after=TOTAL_DEADLINE))
        found = await failure(summarizer(clock), provider)
        assert (found.kind, found.retry_in_s, provider.calls) == ("rate_limit", TOTAL_DEADLINE, 1)
        assert clock.slept == []

    async def test_all_attempts_for_a_key_share_one_deadline(self) -> None:
        """240 seconds, however many attempts would be left."""
        clock = Clock()

        def slow(request: ChatRequest) -> str:
            clock.time += 100
            raise ProviderUnavailableError("503")

        provider = ScriptedProvider(then=slow)
        found = await failure(summarizer(clock, retry_attempts=9), provider)
        assert (found.attempts, provider.calls) == (3, 3)
        assert TOTAL_DEADLINE == 240

    async def test_nothing_is_asked_once_the_deadline_is_over(self) -> None:
        """Pieces of one key share it."""
        clock, provider = slow()
        found = await failure(summarizer(clock), provider, job("x" * 16_000), window=4_000)
        assert (found.kind, found.attempts, provider.calls) == ("timeout", 1, 1)

    async def test_waiting_for_a_slot_does_not_use_up_the_deadline(self) -> None:
        """The deadline is that of a key's attempts; a key that was never asked for has not failed."""
        clock, provider = slow()
        made = summarizer(clock, max_concurrency=1)
        both = await asyncio.gather(
            made.make(job(), target(provider)), made.make(job(key="k2"), target(provider)), return_exceptions=True
        )
        assert [type(one).__name__ for one in both] == ["Summary", "Summary"]
        assert provider.calls == 2

    async def test_a_provider_that_hangs_is_given_up(self) -> None:
        """request_timeout bounds one attempt, and is retried like any timeout."""
        clock, provider = Clock(), ScriptedProvider(gate=asyncio.Event())
        found = await failure(summarizer(clock, request_timeout=0.001, retry_attempts=2), provider)
        assert (found.kind, found.attempts, provider.cancelled) == ("timeout", 2, 2)

    async def test_cancellation_passes_through_and_frees_the_slot(self) -> None:
        """It is no failure of the summariser."""
        provider = ScriptedProvider(gate=asyncio.Event())
        made = summarizer(max_concurrency=1)
        task = asyncio.create_task(made.make(job(), target(provider)))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert provider.cancelled == 1
        assert not own_call.get()
        assert (await made.make(job(), target(ScriptedProvider([ANSWER])))).text == ANSWER


def tool_call_answer() -> ChatResponse:
    return answer(tool_calls=[{"id": "a", "name": "f", "arguments": {}}])


class TestGate:
    @pytest.mark.parametrize(
        ("bad", "kind"),
        [
            ("", "empty"),
            (answer("x", finish_reason="length"), "cut_off"),
            (tool_call_answer(), "tool_calls"),
            ("I'm sorry, I can't do that.", "refusal"),
            (TRANSCRIPT, "not_smaller"),
            (answer("x", finish_reason="content_filter"), "refusal"),
            ("## Summary 7 of 6\nIt was found.", "copied"),
            (answer("It goes on with the other options. " * 40, finish_reason="length"), "repeats"),
        ],
        ids=[
            "empty",
            "cut off",
            "tool calls",
            "refusal",
            "not smaller",
            "filter",
            "copied",
            "loop",
        ],
    )
    async def test_a_refused_answer_gets_one_more_try_with_more_room(self, bad: Any, kind: str) -> None:
        """The second answer may pass; a second refusal is the end."""
        provider = ScriptedProvider([bad, ANSWER])
        assert (await summarizer().make(job(), target(provider))).text == ANSWER
        rooms = [request.max_output_tokens for request in provider.requests]
        assert rooms == [256, 2_400 if kind == "cut_off" else 512]
        found = await failure(summarizer(), ScriptedProvider([bad, bad, ANSWER]))
        assert (found.kind, found.attempts, found.permanent) == (kind, 2, False)
        assert str(found) == f"the answer is no summary: {REASONS[kind]}"

    @pytest.mark.parametrize("window", [4_000, 9_000])
    async def test_the_second_try_has_more_room_in_a_small_window_too(self, window: int) -> None:
        """What was cut off by length would be cut off again."""
        provider = ScriptedProvider([answer("x", finish_reason="length"), ANSWER])
        await summarizer().make(job(), target(provider, window=window))
        first, second = (request.max_output_tokens or 0 for request in provider.requests)
        assert first < second

    async def test_a_refusal_is_told_from_an_error(self) -> None:
        """A key that is refused too often is not asked for again; one that met an outage is."""
        assert (await failure(summarizer(), ScriptedProvider(["", ""]))).refused
        assert not (await failure(summarizer(), ScriptedProvider([ValueError("x")]))).refused


def window_of(tokens: int, then: str = ANSWER) -> Callable[[ChatRequest], str]:
    """A provider's answer that refuses what does not fit, as a real one does."""

    def respond(request: ChatRequest) -> str:
        size = sum(count(str(message.content)) for message in request.messages)
        if size + (request.max_output_tokens or 0) > tokens:
            raise ContextLengthError(f"{size} + {request.max_output_tokens} tokens do not fit into {tokens}")
        return then

    return respond


WINDOW = 4_000
LIMIT = WINDOW - 600 - 2 * LEAST_ROOM
"""Tokens of transcript that one request carries with this window and summaries of 100 tokens."""


class TestPieces:
    def groups(self, tokens: int) -> tuple[str, ...]:
        """Groups of 100 tokens each, the two characters between them included."""
        return tuple(f"#{n} user\n".ljust(398, "x") for n in range(tokens // 100))

    @pytest.mark.parametrize(("tokens", "pieces"), [(2_800, 1), (LIMIT + 100, 2), (2 * LIMIT + 100, 3)])
    async def test_what_is_estimated_too_large_is_cut_before_it_is_sent(self, tokens: int, pieces: int) -> None:
        """size / limit pieces, rounded up, and one merge call that joins them."""
        provider = ScriptedProvider(then=ANSWER)
        made = await summarizer().make(job(*self.groups(tokens)), target(provider, window=WINDOW))
        assert provider.calls == pieces + (pieces > 1)
        assert made.text == ANSWER
        if pieces > 1:
            system, user = rows_of(provider.requests[-1])
            joined = numbered([ANSWER] * pieces)
            assert user == f"{fence_of(joined)}\n{joined}\n{fence_of(joined)}"
            assert system == PROMPTS.merge.fill(words="75", fence=fence_of(joined), count=str(pieces))

    async def test_pieces_hold_every_group_in_order_and_whole(self) -> None:
        """Rule 12; cut at group boundaries."""
        groups = self.groups(2 * LIMIT + 100)
        provider = ScriptedProvider(then=ANSWER)
        await summarizer().make(job(*groups), target(provider, window=WINDOW))
        shown = [rows_of(request)[1] for request in provider.requests[:-1]]
        inside = [text.split("\n", 1)[1].rsplit("\n", 1)[0] for text in shown]
        assert "\n\n".join(inside) == "\n\n".join(groups)
        assert all(text.startswith("#") for text in inside)

    @pytest.mark.parametrize("share", [1.1, 1.9, 3.8])
    async def test_every_piece_fits_the_window(self, share: float) -> None:
        """What was cut because it was too large must not be refused for its size again."""
        provider = ScriptedProvider(then=window_of(WINDOW))
        made = await summarizer().make(job(*self.groups(int(share * LIMIT))), target(provider, window=WINDOW))
        assert made.text == ANSWER

    @pytest.mark.parametrize("window", [None, 100_000])
    async def test_what_is_refused_as_too_large_is_cut_in_two(self, window: int | None) -> None:
        """The window was not known, or smaller than its provider says; no attempt is wasted on the same request."""
        for error in (ContextLengthError("too many"), InvalidRequestError("prompt is too long: 210000 > 200000")):
            clock, provider = Clock(), ScriptedProvider([error], then=ANSWER)
            made = await summarizer(clock).make(job(*self.groups(4_000)), target(provider, window=window))
            assert (made.text, made.usage["attempts"], provider.calls) == (ANSWER, 4, 4)
            assert clock.slept == []

    async def test_a_piece_that_is_still_too_large_is_the_end(self) -> None:
        """A digest stands for it; nothing is halved for ever."""
        provider = ScriptedProvider(then=ContextLengthError("too many"))
        found = await failure(summarizer(), provider)
        assert found.kind == "too_large"
        assert provider.calls <= 4

    async def test_one_huge_row_is_cut_by_text(self) -> None:
        """Nothing of it is lost."""
        provider = ScriptedProvider(then=ANSWER)
        huge = "".join(f"{n:07d} " for n in range(2_000))
        await summarizer().make(job(huge), target(provider, window=WINDOW))
        shown = [rows_of(request)[1] for request in provider.requests[:-1]]
        assert len(shown) == -(-count(huge) // LIMIT)
        assert "".join(text.split("\n", 1)[1].rsplit("\n", 1)[0] for text in shown) == huge
