"""The summariser: its request, retries, the gate's second try, cuts of what is too large, and what it reports."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
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
from context_summarize.summaries.answer import REASONS
from context_summarize.summaries.breaker import FAILURES
from context_summarize.summaries.call import LONGEST_WAIT, Summarizer, own_call
from context_summarize.summaries.prompts import load_prompts
from context_summarize.summaries.request import Job, Target
from context_summarize.testing import ScriptedProvider
from context_summarize.transcript.escaping import fence_of, numbered
from tests.support.recorder import Clock
from tests.support.services import services

PROMPTS = load_prompts("default")
ANSWER = "Goal: find order HAT136. State: found."
TRANSCRIPT = "#1 user\nPlease find order HAT136 for mia_li_3668.\n\n#2 assistant\n" + "It was looked up. " * 200


def count(text: str) -> int:
    """A token is four characters, begun ones included."""
    return -(-len(text) // 4)


def job(text: str = TRANSCRIPT, **values: Any) -> Job:
    base: dict[str, Any] = {"key": "k1", "level": 0, "source_tokens": count(text), "summary_tokens": 100}
    return Job(text=text, **{**base, **values})


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
        """[system, user], room for answer and reasoning, purpose, and the flag that keeps it off the screen."""
        provider = ScriptedProvider([ANSWER])
        await summarizer().make(job(), target(provider))
        [request] = provider.requests
        assert [message.role for message in request.messages] == ["system", "user"]
        assert request.max_output_tokens == 2 * 100 + 2_000
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
        text = numbered([f"one {TRANSCRIPT}", f"two {TRANSCRIPT}"])
        await summarizer().make(job(text, level=1, count=2), target(provider))
        system, user = rows_of(provider.requests[0])
        assert system == PROMPTS.merge.fill(words="75", fence=fence_of(text), count="2")
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
        for window, room in ((4_000, 1_000), (400, 200), (40_000, 2_200)):
            provider = ScriptedProvider(then=ANSWER)
            await summarizer().make(job("short text " * 30), target(provider, window=window))
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
        """Three in all, exponential with jitter."""
        clock, provider = Clock(), ScriptedProvider(then=ProviderUnavailableError("503"))
        found = await failure(summarizer(clock), provider)
        assert (found.kind, found.attempts, provider.calls) == ("unavailable", 3, 3)
        assert [least <= slept <= least + 1 for least, slept in zip((1, 2), clock.slept, strict=True)] == [True] * 2

    async def test_retry_after_is_honoured(self) -> None:
        """What the provider asks for is waited, no more and no less."""
        clock = Clock()
        script: list[Any] = [RateLimitError("slow", retry_after=7.5), RateLimitError("slow", retry_after=0), ANSWER]
        await summarizer(clock).make(job(), target(ScriptedProvider(script)))
        assert clock.slept == [7.5, 0]

    async def test_a_longer_retry_after_than_two_minutes_is_not_waited_for(self) -> None:
        """It is handed on instead."""
        clock, provider = Clock(), ScriptedProvider(then=RateLimitError("slow", retry_after=LONGEST_WAIT + 1))
        found = await failure(summarizer(clock), provider)
        assert (found.kind, found.retry_in_s, provider.calls) == ("rate_limit", LONGEST_WAIT + 1, 1)
        assert clock.slept == []

    async def test_a_provider_that_hangs_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One attempt may take a bounded time, and is retried like any timeout."""
        monkeypatch.setattr(Config, "call_seconds", 0.001)
        clock, provider = Clock(), ScriptedProvider(gate=asyncio.Event())
        found = await failure(summarizer(clock), provider)
        assert (found.kind, found.attempts, provider.cancelled) == ("timeout", 3, 3)

    async def test_cancellation_passes_through(self) -> None:
        """It is no failure of the summariser."""
        provider = ScriptedProvider(gate=asyncio.Event())
        made = summarizer()
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
        assert rooms == [2_200, 4_400]
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


def window_of(tokens: int) -> Callable[[ChatRequest], str]:
    """A provider's answer that refuses what does not fit, as a real one does."""

    def respond(request: ChatRequest) -> str:
        size = sum(count(str(message.content)) for message in request.messages)
        if size + (request.max_output_tokens or 0) > tokens:
            raise ContextLengthError(f"{size} + {request.max_output_tokens} tokens do not fit into {tokens}")
        return ANSWER

    return respond


NUMBERS = "".join(f"{number:07d} " for number in range(4_000))
"""8,000 tokens in which each place is told from all others."""
NOTE = re.compile(r"\[… ([\d,]+) of 32,000 characters left out …\]")


class TestTooLarge:
    async def test_what_does_not_fit_the_window_is_cut_in_its_middle_before_it_is_sent(self) -> None:
        """Head and tail are shown; what is missing is named with its size, to the summariser and in the summary."""
        provider = ScriptedProvider(then=window_of(6_000))
        made = await summarizer().make(job(NUMBERS), target(provider, window=6_000))
        [request] = provider.requests
        shown = rows_of(request)[1].split("\n", 1)[1].rsplit("\n", 1)[0]
        head, size, tail = NOTE.split(shown)
        assert NUMBERS.startswith(head.strip())
        assert NUMBERS.endswith(tail.lstrip())
        assert len(head) > len(tail) > 1_000
        assert int(size.replace(",", "")) == 32_000 - len(head.rstrip("\n")) - len(tail.lstrip("\n"))
        assert made.text.startswith(f"{ANSWER}\n\n[All this was too large to be read whole: ")
        assert "of 32,000 characters were left out.]" in made.text
        assert (made.source_tokens, made.tokens) == (8_000, count(made.text))

    @pytest.mark.parametrize("window", [None, 100_000])
    async def test_what_is_refused_as_too_large_is_cut_to_half(self, window: int | None) -> None:
        """The window was not known, or smaller than its provider says; nothing is waited for."""
        for error in (ContextLengthError("too many"), InvalidRequestError("prompt is too long: 210000 > 200000")):
            clock, provider = Clock(), ScriptedProvider([error], then=ANSWER)
            made = await summarizer(clock).make(job(NUMBERS), target(provider, window=window))
            assert (made.usage["attempts"], provider.calls, clock.slept) == (2, 2, [])
            first, second = (count(rows_of(request)[1]) for request in provider.requests)
            assert second == pytest.approx(first / 2, rel=0.02)

    async def test_what_is_still_too_large_after_three_cuts_is_the_end(self) -> None:
        """A fallback stands for it; nothing is halved for ever."""
        provider = ScriptedProvider(then=ContextLengthError("too many"))
        found = await failure(summarizer(), provider)
        assert (found.kind, provider.calls) == ("too_large", 4)


def looked_up(times: int) -> str:
    """So many sentences that all differ, by their words too."""
    words = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "ivory", "jetty"]
    names = (f"{words[at % 10]} {words[at // 10 % 10]} {words[(at * 7 + 3) % 10]}" for at in range(times))
    return "".join(f"Order HAT136 was looked up. The {name} desk said that it is on its way. " for name in names)


LONG = job("It was looked up. " * 900, summary_tokens=400)


class TestLength:
    async def test_the_longest_answer_of_a_provider_is_never_exceeded(self) -> None:
        """Neither on the second try."""
        provider = ScriptedProvider(["", ""])
        await failure(summarizer(), provider, output=500)
        assert [request.max_output_tokens for request in provider.requests] == [500, 500]

    @pytest.mark.parametrize(
        "refusal",
        [
            InvalidRequestError("max_tokens is too large: 3600. This model supports at most 512 completion tokens"),
            InvalidRequestError("max_output_tokens is too high"),
        ],
    )
    async def test_a_refused_length_is_left_out_at_once_and_from_then_on(self, refusal: Exception) -> None:
        """The provider's own default holds then."""
        clock = Clock()
        made, provider = summarizer(clock), ScriptedProvider([refusal], then=ANSWER)
        await made.make(job(), target(provider))
        await made.make(job(key="k2"), target(provider))
        assert [request.max_output_tokens for request in provider.requests] == [2_200, None, None]
        assert sum(clock.slept) == 0

    async def test_an_answer_that_was_cut_off_stands_up_to_its_last_whole_sentence(self) -> None:
        """At once where it is as long as was asked for; half of that on the second try."""
        for times, calls in ((30, 1), (12, 2)):
            text = looked_up(times) + "And then it was th"
            provider = ScriptedProvider(then=answer(text, finish_reason="length"))
            made = await summarizer().make(LONG, target(provider))
            assert (provider.calls, made.text) == (calls, looked_up(times).strip())

    async def test_an_answer_that_is_far_too_long_is_cut_to_whole_sentences(self) -> None:
        """Four times the length that was asked for stands: a model that rambles fills no view."""
        made = await summarizer().make(LONG, target(ScriptedProvider([looked_up(120)])))
        assert 1_400 < made.tokens <= 1_600
        assert made.text.endswith("on its way.")

    @pytest.mark.parametrize("text", ["Order HAT136 was found. And th", " ".join(map(str, range(800)))])
    async def test_too_little_of_an_answer_that_was_cut_off_does_not_stand(self, text: str) -> None:
        """No sentence, or a short one."""
        provider = ScriptedProvider(then=answer(text, finish_reason="length"))
        assert (await failure(summarizer(), provider, LONG)).kind == "cut_off"


class TestForeignCode:
    @pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(1), GeneratorExit()], ids=repr)
    async def test_what_is_no_exception_is_a_failure(self, error: BaseException) -> None:
        """Raised by the provider, or while its answer is read; five in a row open the breaker."""

        class Odd:
            @property
            def content(self) -> Any:
                raise error

        class Raising(ScriptedProvider):
            async def complete(self, request: Any, **kwargs: Any) -> Any:
                self.requests.append(request)
                if self.calls % 2:
                    raise error
                return Odd()

        made, provider = summarizer(), Raising()
        for _ in range(10):
            with pytest.raises(SummaryUnavailable):
                await made.make(job(), target(provider))
        assert provider.calls == FAILURES

    async def test_a_call_that_ignores_its_cancellation_is_left_to_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When its time is over; it counts as any other failure."""
        monkeypatch.setattr("context_summarize.background.GRACE", 0.001)
        released = asyncio.Event()

        async def deaf(request: ChatRequest) -> str:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue
            return ANSWER

        clock, provider = Clock(), ScriptedProvider(then=deaf)
        monkeypatch.setattr(Config, "call_seconds", 0.005)
        made = summarizer(clock)
        found = await failure(made, provider)
        released.set()
        assert (found.kind, found.attempts) == ("timeout", provider.calls)
        await asyncio.sleep(0)
        assert (await made.make(job(), target(provider))).text == ANSWER

    async def test_lone_surrogates_become_replacement_characters(self) -> None:
        """Nobody could send them to a provider; pairs are joined."""
        provider = ScriptedProvider([f"{ANSWER} \ud800 \ud83d\ude00"])
        assert (await summarizer().make(job(), target(provider))).text == f"{ANSWER} \ufffd \U0001f600"

    @pytest.mark.parametrize(
        "usage",
        [{"cost_usd": "1e999999"}, {"cost_usd": 10**5_000}, {"input_tokens": 10**400}],
        ids=["large", "integer", "tokens"],
    )
    async def test_absurd_usage_is_left_out(self, usage: dict[str, Any]) -> None:
        """A sum with a million digits would stop every statistic."""
        provider = ScriptedProvider([lambda request: SimpleNamespace(content=ANSWER, usage=SimpleNamespace(**usage))])
        made = await summarizer().make(job(), target(provider))
        assert len(made.cost_usd or "") < 20
        assert made.usage["input_tokens"] == 0
