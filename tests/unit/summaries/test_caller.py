"""Calls of one provider: how long answers may be, what is kept, and providers that hang, lie or raise anything."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.llm_errors import InvalidRequestError
from amplifier_core.message_models import ChatRequest

from context_summarize.config import Config
from context_summarize.errors import SummaryUnavailable
from context_summarize.summaries.breaker import FAILURES
from context_summarize.summaries.caller import MOST_LINGERING
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.summarizer import TOTAL_DEADLINE, Summarizer
from context_summarize.testing import ScriptedProvider
from tests.support.recorder import Clock
from tests.support.services import services

ANSWER = "Goal: find order HAT136. State: found."
TRANSCRIPT = "#1 user\nPlease find order HAT136.\n\n#2 assistant\n" + "It was looked up. " * 300


def count(text: str) -> int:
    """A token is four characters."""
    return -(-len(text) // 4)


def summarizer(clock: Clock | None = None, **config: Any) -> Summarizer:
    clock = clock or Clock()
    return Summarizer(services(Config(**config), count, clock=clock, sleep=clock.sleep))


def job(text: str = TRANSCRIPT, **values: Any) -> Job:
    values = {"key": "k", "level": 0, "source_tokens": count(text), "summary_tokens": 400, **values}
    return Job(parts=(text,), **values)


def answer(text: str, **values: Any) -> Any:
    return SimpleNamespace(content=text, **values)


async def rooms(made: Summarizer, provider: ScriptedProvider, output: int | None = None, **values: Any) -> list[int]:
    """`max_output_tokens` of every request for one summary."""
    before = provider.calls
    try:
        await made.make(job(**values), Target(provider, "main", output=output))
    except SummaryUnavailable:
        pass
    return [request.max_output_tokens or 0 for request in provider.requests[before:]]


class TestAllowance:
    async def test_it_is_twice_the_length_at_first_and_grows_with_reasoning(self) -> None:
        """Thinking blocks or reasoning tokens are reasoning; from then on there is room for it."""
        shows: list[Any] = [
            SimpleNamespace(content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": ANSWER}]),
            answer(ANSWER, usage=SimpleNamespace(reasoning_tokens=5)),
        ]
        for shown in shows:
            made, provider = summarizer(), ScriptedProvider([shown], then=ANSWER)
            assert await rooms(made, provider) == [800]
            assert await rooms(made, provider) == [3_600]

    async def test_thinking_in_the_history_counts_for_the_sessions_own_model(self) -> None:
        """Another summariser is another model."""
        assert await rooms(summarizer(), ScriptedProvider(then=ANSWER), reasons=True) == [3_600]
        other = summarizer(summary_model="small")
        assert await rooms(other, ScriptedProvider(then=ANSWER), reasons=True) == [800]

    async def test_an_answer_cut_off_without_text_was_hidden_reasoning(self) -> None:
        """Some models show nothing of it."""
        provider = ScriptedProvider([answer("", finish_reason="length")], then=ANSWER)
        assert await rooms(summarizer(), provider) == [800, 3_600]

    async def test_a_model_that_needed_more_gets_it_at_once_the_next_time(self) -> None:
        """One that rambled on does not."""
        long = answer(looked_up(30), finish_reason="length")
        made, provider = summarizer(), ScriptedProvider([long], then=ANSWER)
        assert await rooms(made, provider) == [800, 1_600]
        assert await rooms(made, provider) == [1_600]

        def rambling(request: ChatRequest) -> Any:
            return answer(looked_up(1_000)[: (request.max_output_tokens or 0) * 4], finish_reason="length")

        made, provider = summarizer(), ScriptedProvider(then=rambling)
        assert await rooms(made, provider) == [800, 1_600]
        assert await rooms(made, provider) == [800, 1_600]

    async def test_the_providers_longest_answer_is_never_exceeded(self) -> None:
        """Neither on the second try; where there is no more room, the same is not asked twice."""
        assert await rooms(summarizer(), ScriptedProvider(["", ""]), output=500) == [500, 500]
        provider = ScriptedProvider(then=answer("x", finish_reason="length"))
        assert await rooms(summarizer(), provider, output=500) == [500]

    async def test_a_refused_length_is_lowered_and_asked_again(self) -> None:
        """To the number that is named, else to half; later summaries keep to it."""
        named = InvalidRequestError("max_tokens is too large: 3600. This model supports at most 512 completion tokens")
        made, provider = summarizer(), ScriptedProvider([named], then=ANSWER)
        assert await rooms(made, provider) == [800, 512]
        assert await rooms(made, provider) == [512]
        unnamed = InvalidRequestError("max_output_tokens is too high")
        assert await rooms(summarizer(), ScriptedProvider([unnamed] * 2, then=ANSWER)) == [800, 400, 200]

    async def test_a_length_that_is_always_refused_opens_the_breaker(self) -> None:
        """After five calls, not 5,913."""
        made, provider = summarizer(), ScriptedProvider(then=InvalidRequestError("max_tokens is too large"))
        for _ in range(10):
            await rooms(made, provider)
        assert provider.calls == FAILURES
        assert made.is_paused(Target(provider, "main"))


def looked_up(times: int) -> str:
    """So many sentences that all differ, by their words too."""
    words = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "ivory", "jetty"]
    names = (f"{words[at % 10]} {words[at // 10 % 10]} {words[(at * 7 + 3) % 10]}" for at in range(times))
    return "".join(f"Order HAT136 was looked up. The {name} desk said that it is on its way. " for name in names)


class TestCutOff:
    async def test_a_summary_cut_off_twice_stands_up_to_its_last_whole_sentence(self) -> None:
        """With more room the second time, long enough, and smaller than its source."""
        text = looked_up(30) + "And then it was th"
        provider = ScriptedProvider(then=answer(text, finish_reason="length"))
        made = await summarizer().make(job(), Target(provider, "main"))
        assert provider.calls == 2
        assert made.text.endswith("on its way.")

    async def test_a_model_that_rambles_is_asked_once_from_then_on(self) -> None:
        """It has filled twice the room as well: what it writes first stands up to its last whole sentence."""
        text = looked_up(60) + "And then it was th"
        made, provider = summarizer(), ScriptedProvider(then=answer(text, finish_reason="length"))
        assert await rooms(made, provider) == [800, 1_600]
        assert await rooms(made, provider) == [800]

    async def test_a_model_that_ends_by_itself_with_more_room_does_not_ramble(self) -> None:
        """It gets as much at once the next time."""
        text = looked_up(60) + "And then it was th"
        made = summarizer()
        provider = ScriptedProvider([answer(text, finish_reason="length")], then=ANSWER)
        assert await rooms(made, provider) == [800, 1_600]
        assert await rooms(made, provider) == [1_600]

    @pytest.mark.parametrize(
        "second",
        [
            InvalidRequestError("bad schema"),
            TimeoutError(),
            "",
            "I'm sorry, I can't.",
            answer("no", finish_reason="length"),
        ],
        ids=["error", "timeout", "empty", "refusal", "cut off sooner"],
    )
    async def test_the_first_answer_stands_where_the_second_is_none(self, second: Any) -> None:
        """What was paid for and is long enough is not thrown away."""
        text = looked_up(30) + "And then it was th"
        provider = ScriptedProvider([answer(text, finish_reason="length")], then=second)
        made = await summarizer().make(job(), Target(provider, "main"))
        assert made.text.endswith("on its way.")

    @pytest.mark.parametrize(
        "text",
        ["Order HAT136 was found. And th", " ".join(map(str, range(800))), "\n".join(f"{at}." for at in range(1_400))],
    )
    async def test_too_little_of_it_or_too_much_does_not(self, text: str) -> None:
        """No sentence, a short one, or no smaller than the source."""
        provider = ScriptedProvider(then=answer(text, finish_reason="length"))
        with pytest.raises(SummaryUnavailable) as caught:
            await summarizer().make(job(), Target(provider, "main"))
        assert caught.value.kind == "cut_off"


async def test_finished_pieces_are_kept_over_a_timeout() -> None:
    """The next attempt goes on where the last one stopped."""
    clock = Clock()

    def slow(request: ChatRequest) -> str:
        clock.time += 100
        return ANSWER

    provider = ScriptedProvider(then=slow)
    made = summarizer(clock)
    text = "".join(f"{n:07d} " for n in range(5_000))
    for _ in range(2):
        with pytest.raises(SummaryUnavailable) as caught:
            await made.make(job(text), Target(provider, "main", window=4_000))
        assert caught.value.kind == "timeout"
    done = await made.make(job(text), Target(provider, "main", window=4_000))
    assert done.text == ANSWER
    shown = [str(request.messages[1].content) for request in provider.requests]
    assert len(shown) == len(set(shown)) <= 3 * -(-TOTAL_DEADLINE // 100)


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
                await made.make(job(), Target(provider, "main"))
        assert provider.calls == FAILURES

    async def test_a_call_that_ignores_its_cancellation_gives_its_slot_back(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When its time is over; and only a few of them are left to themselves."""
        monkeypatch.setattr("context_summarize.summaries.calls.GRACE", 0.001)
        released = asyncio.Event()

        async def deaf(request: ChatRequest) -> str:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    continue
            return ANSWER

        clock, provider = Clock(), ScriptedProvider(then=deaf)
        made = summarizer(clock, request_timeout=0.005, max_concurrency=1)
        target = Target(provider, "main")
        for _ in range(20):
            with pytest.raises(SummaryUnavailable):
                await made.make(job(), target)
            clock.time += 10_000
        assert provider.calls == MOST_LINGERING
        assert made.is_paused(target)
        released.set()
        await asyncio.sleep(0.01)
        assert (await made.make(job(), target)).text == ANSWER

    async def test_lone_surrogates_become_replacement_characters(self) -> None:
        """Nobody could send them to a provider; pairs are joined."""
        provider = ScriptedProvider([f"{ANSWER} \ud800 \ud83d\ude00"])
        assert (await summarizer().make(job(), Target(provider, "main"))).text == f"{ANSWER} \ufffd \U0001f600"

    @pytest.mark.parametrize(
        "usage",
        [{"cost_usd": "1e999999"}, {"cost_usd": 10**5_000}, {"input_tokens": 10**400}],
        ids=["large", "integer", "tokens"],
    )
    async def test_absurd_usage_is_left_out(self, usage: dict[str, Any]) -> None:
        """A sum with a million digits would stop every statistic."""
        provider = ScriptedProvider([answer(ANSWER, usage=SimpleNamespace(**usage))])
        made = await summarizer().make(job(), Target(provider, "main"))
        assert len(made.cost_usd or "") < 20
        assert made.usage["input_tokens"] == 0
