"""A provider over HTTP, from the request on the wire to the view: answers, refusals, and what is lost on the way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
import respx
from amplifier_core.llm_errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    RateLimitError,
)
from amplifier_core.message_models import ChatRequest, Message
from amplifier_core.testing import EventRecorder

from context_summarize import SummarizingContextManager
from context_summarize.facts.fallback import FALLBACK_LINE
from context_summarize.messages.pairs import broken_pairs
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import tool_session
from tests.support.chat_completions import BASE_URL, ChatCompletionsProvider, answer, failure
from tests.support.recorder import Clock

SUMMARY = "Goal: the user asked for the state of several orders. State: every one of them was found and shipped."
ROWS = tool_session(9, size=2_400)
"""Nine lookups of some 1,100 tokens each."""
SETTINGS: dict[str, Any] = {
    "keep_recent": 6,
    "prefetch_threshold": None,  # each answer of the server is for a boundary
    "segment_tokens": 2_000,
    "summary_tokens": 200,
    "elide_tool_results": None,
    "safety_margin": 0,
    "compact_threshold": 0.6,
}
"""With a window of 12,000 and output of 2,000 tokens: one boundary, which folds one segment."""

FENCED = re.compile(r"(?s)\A(=== transcript [0-9a-f]{20} ===)\n(.*)\n\1\Z")
TOO_LONG = "This model's maximum context length is 3000 tokens. Please reduce the length of the messages."


class Coordinator:
    """As much of a coordinator as a manager asks for."""

    def __init__(self) -> None:
        self.hooks = EventRecorder()

    def get(self, mount_point: str) -> None:
        del mount_point


class Bench:
    """A manager, a provider over HTTP and the route that stands for its server."""

    def __init__(self, route: respx.Route, **settings: Any) -> None:
        self.clock = Clock()
        self.route = route
        self.coordinator = Coordinator()
        self.provider = ChatCompletionsProvider(context_window=12_000, max_output_tokens=2_000)
        self.manager = SummarizingContextManager(
            self.coordinator, sleep=self.clock.sleep, clock=self.clock, **{**SETTINGS, **settings}
        )

    async def view(self, rows: list[JsonRow] = ROWS) -> list[JsonRow]:
        """Add the rows and ask for a view; what must hold for every one of them is checked."""
        before = len(await self.manager.get_messages())
        for row in rows:
            await self.manager.add_message(row)
        view = await self.manager.get_messages_for_request(provider=self.provider)
        assert (await self.manager.get_messages())[before:] == rows, "the history is intact"
        assert broken_pairs(view) == []
        for row in view:
            Message(**row)
        assert await self.manager.get_token_count() <= 10_000
        return view

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of all requests, in order."""
        return [json.loads(call.request.content) for call in self.route.calls]

    @property
    def transcripts(self) -> list[str]:
        """What stood between the fences of each request."""
        return [fenced(body) for body in self.requests]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [data for _, data in self.coordinator.hooks.get_events(name)]


def fenced(body: dict[str, Any]) -> str:
    """The transcript of a summary request, between its two fences."""
    found = FENCED.match(body["messages"][1]["content"])
    assert found is not None, "a fence before and after, and nothing else"
    assert found.group(1) in body["messages"][0]["content"], "the instructions name the fence"
    return found.group(2)


def summary_rows(view: list[JsonRow]) -> list[JsonRow]:
    return [row for row in view if (row.get("metadata") or {}).get("source") == "context-summarize"]


@pytest.fixture
def server() -> Iterator[respx.Route]:
    """The only way out: what no route takes is an error."""
    with respx.mock(assert_all_called=False) as router:
        yield router.post(f"{BASE_URL}/chat/completions")


@pytest.fixture
async def bench(server) -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        made.append(Bench(server, **settings))
        return made[-1]

    yield make
    for bench in made:
        await bench.manager.close()
        await bench.provider.close()


def assert_summary(view: list[JsonRow], text: str = SUMMARY) -> None:
    """The view shows the model's text in place of the folded rows, and the newest rows as they are."""
    [row] = summary_rows(view)
    assert text in row["content"]
    assert FALLBACK_LINE not in row["content"]
    assert view[-6:] == ROWS[-6:]
    assert len(view) < len(ROWS)


def assert_digest(view: list[JsonRow]) -> None:
    """The view shows what code can say, exact ids among it, and the newest rows as they are."""
    [row] = summary_rows(view)
    assert SUMMARY not in row["content"]
    assert FALLBACK_LINE in row["content"]
    assert "ORD00000" in row["content"]
    assert view[-6:] == ROWS[-6:]
    assert len(view) < len(ROWS)


class TestOnTheWire:
    async def test_a_summary_is_one_request_with_instructions_and_a_fenced_transcript(self, server, bench):
        """System row, user row, room to think, the provider's model; the whole transcript, and nothing beside it."""
        server.side_effect = [answer(SUMMARY)]
        it = bench()

        view = await it.view()

        assert_summary(view)
        [body] = it.requests
        assert body.keys() == {"model", "messages", "max_completion_tokens", "reasoning_effort"}
        assert body["model"] == "chat-1"
        assert body["max_completion_tokens"] == 2 * SETTINGS["summary_tokens"]
        system, user = body["messages"]
        assert (system["role"], user["role"]) == ("system", "user")
        assert system.keys() == user.keys() == {"role", "content"}
        assert "quoted data" in system["content"]
        assert "at most 112 words" in system["content"]
        [transcript] = it.transcripts
        folded = ROWS[: summary_rows(view)[0]["metadata"]["messages"][1]]
        assert transcript.startswith("#1 user\nPlease look up order ORD00000")
        assert re.findall(r"(?m)^#(\d+) ", transcript) == [str(at) for at in range(1, len(folded) + 1)]
        for row in folded:
            text = row["content"] if isinstance(row["content"], str) else row["content"][0]["input"]["order"]
            assert text in transcript
        assert "ORD00000" not in system["content"]
        assert authorizations(it) == {"Bearer not-a-key"}

    async def test_the_request_names_the_model_of_the_settings(self, server, bench):
        server.side_effect = [answer(SUMMARY, model="small-1-2026")]
        it = bench(summary_model="small-1")

        await it.view()

        assert [body["model"] for body in it.requests] == ["small-1"]
        [event] = it.events("context-summarize:summary")
        assert event["model"] == "small-1-2026"

    async def test_the_event_tells_what_the_server_counted(self, server, bench):
        server.side_effect = [answer(SUMMARY, cost=61)]
        it = bench()

        await it.view()

        [event] = it.events("context-summarize:summary")
        assert event["provider"] == "chat"
        assert event["model"] == "chat-1-2026"
        assert event["usage"] == {"input_tokens": 900, "output_tokens": 61}
        assert event["attempts"] == 1

    async def test_the_view_itself_goes_over_the_wire_with_its_pairs(self, server, bench):
        """What the host sends after a boundary: the summary as a system row, calls and results next to each other."""
        server.side_effect = [answer(SUMMARY), answer("The last order was shipped.")]
        it = bench()
        view = await it.view()

        await it.provider.complete(ChatRequest(messages=[Message(**row) for row in view]))

        sent = it.requests[-1]["messages"]
        assert [row["role"] for row in sent] == [row["role"] for row in view]
        assert any(row["role"] == "system" and SUMMARY in row["content"] for row in sent)
        for at, row in enumerate(sent):
            if row["role"] == "tool":
                assert sent[at - 1]["tool_calls"][0]["id"] == row["tool_call_id"]

    async def test_a_second_view_asks_for_nothing(self, server, bench):
        server.side_effect = [answer(SUMMARY)]
        it = bench()

        view = await it.view()
        again = await it.manager.get_messages_for_request(provider=it.provider)

        assert again == view
        assert len(it.requests) == 1


def authorizations(bench: Bench) -> set[str]:
    return {call.request.headers["Authorization"] for call in bench.route.calls}


class TestWhatMayBeRetried:
    async def test_after_429_it_waits_as_long_as_the_server_asks(self, server, bench):
        server.side_effect = [failure(429, "slow down", Retry_After="7"), answer(SUMMARY)]
        it = bench()

        view = await it.view()

        assert_summary(view)
        assert it.clock.slept == [7.0]
        assert it.requests[0] == it.requests[1]
        assert len(it.requests) == 2
        [event] = it.events("context-summarize:summary")
        assert event["attempts"] == 2
        assert event["duration_ms"] == 7_000
        [post] = it.events("context:post_compact")
        assert (post["digests"], post["wait_ms"]) == (0, 7_000)

    async def test_a_wait_beyond_the_deadline_is_not_begun(self, server, bench):
        """All attempts for one key have 240 s together: who asks for ten minutes gets a digest now."""
        server.side_effect = [failure(429, "come back later", Retry_After="600")]
        it = bench()

        view = await it.view()

        assert_digest(view)
        assert it.clock.slept == []
        assert len(it.requests) == 1
        [event] = it.events("context-summarize:failure")
        assert (event["kind"], event["attempts"], event["retry_in_s"]) == ("rate_limit", 1, 600.0)

    @pytest.mark.parametrize("status", [500, 502, 503, 529])
    async def test_after_a_server_error_it_asks_again(self, server, bench, status):
        server.side_effect = [failure(status, "oops"), answer(SUMMARY)]
        it = bench()

        view = await it.view()

        assert_summary(view)
        assert len(it.requests) == 2
        assert it.requests[0] == it.requests[1]
        [waited] = it.clock.slept
        assert 1 <= waited <= 2

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (httpx.ReadTimeout("nothing came"), "timeout"),
            (httpx.ConnectTimeout("nobody there"), "timeout"),
            (httpx.ConnectError("refused"), "unavailable"),
            (httpx.RemoteProtocolError("cut off in the middle"), "unavailable"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
    )
    async def test_a_lost_request_is_asked_again_as_often_as_the_setting_says(self, server, bench, error, kind):
        """Once lost is a summary after one wait; lost each time is a digest after `retry_attempts`."""
        server.side_effect = [error, answer(SUMMARY)]
        it = bench()
        assert_summary(await it.view())
        assert len(it.requests) == 2

        server.reset()
        server.side_effect = error
        it = bench(retry_attempts=4)
        assert_digest(await it.view())
        assert len(it.requests) == 4
        assert len(it.clock.slept) == 3
        assert it.clock.slept == sorted(it.clock.slept), "each wait is longer than the one before"
        [event] = it.events("context-summarize:failure")
        assert (event["kind"], event["attempts"]) == (kind, 4)


class TestWhatMayNot:
    @pytest.mark.parametrize(
        ("response", "kind"),
        [
            (httpx.Response(200, text='{"choices": [{"mess'), "unavailable"),
            (httpx.Response(200, text="<html>a proxy's page</html>"), "unavailable"),
            (httpx.Response(200, json={"choices": []}), "unavailable"),
            (failure(401, "no such key"), "auth"),
            (failure(404, "no such model"), "not_found"),
            (failure(400, "unknown parameter"), "invalid_request"),
        ],
        ids=["cut JSON", "no JSON", "no choice", "401", "404", "400"],
    )
    async def test_an_answer_that_no_retry_mends_is_asked_for_once(self, server, bench, response, kind):
        """A digest stands in, the failure is one event, and nothing was waited for."""
        server.side_effect = [response]
        it = bench()

        view = await it.view()

        assert_digest(view)
        assert len(it.requests) == 1
        assert it.clock.slept == []
        [event] = it.events("context-summarize:failure")
        assert (event["kind"], event["attempts"]) == (kind, 1)
        assert "not-a-key" not in str(it.coordinator.hooks.events)

    async def test_a_digest_is_replaced_at_the_next_boundary(self, server, bench):
        """What could not be had once is asked for again when the view changes anyway."""
        server.side_effect = [httpx.Response(200, text="no JSON")]
        it = bench()
        assert_digest(await it.view())

        server.side_effect = lambda request: answer(SUMMARY)
        more = tool_session(6, size=2_400, start=9)
        view = await it.view(more)

        assert len(summary_rows(view)) > 1
        assert all(SUMMARY in row["content"] for row in summary_rows(view))
        first, *_ = it.transcripts
        assert it.transcripts.count(first) == 2
        assert await it.manager.get_messages() == ROWS + more


class TestTooLarge:
    @pytest.mark.parametrize("code", ["context_length_exceeded", None], ids=["by code", "by its words alone"])
    async def test_a_refused_transcript_is_sent_in_pieces_and_their_summaries_are_joined(self, server, bench, code):
        """Refused once, then two pieces and one merge; whatever the server calls its refusal."""

        def serve(request: httpx.Request) -> httpx.Response:
            body = json.loads(request.content)
            if len(fenced(body)) > 8_000:
                return failure(400, TOO_LONG, code)
            merges = body["messages"][0]["content"].startswith("You merge")
            return answer(SUMMARY if merges else f"State: a part of {len(fenced(body))} characters was read.")

        server.side_effect = serve
        it = bench()

        view = await it.view()

        assert_summary(view)
        whole, *pieces, merge = it.transcripts
        assert len(pieces) >= 2
        assert max(map(len, pieces)) <= 8_000
        assert "\n\n".join(pieces) == whole, "every row is in exactly one piece"
        assert [f"a part of {len(piece)} characters" in merge for piece in pieces] == [True] * len(pieces)
        assert Counter(it.transcripts).most_common(1)[0][1] == 1, "nothing was asked for twice"
        assert it.requests[-1]["max_completion_tokens"] == it.requests[0]["max_completion_tokens"]
        assert it.clock.slept == []
        [event] = it.events("context-summarize:summary")
        assert event["attempts"] == len(it.requests)
        assert event["usage"]["input_tokens"] == 900 * (len(it.requests) - 1)

    async def test_a_server_that_refuses_every_size_gets_a_digest(self, server, bench):
        """At most two calls a piece, then it is given up."""
        server.side_effect = lambda request: failure(400, TOO_LONG, "context_length_exceeded")
        it = bench()

        view = await it.view()

        assert_digest(view)
        [event] = it.events("context-summarize:failure")
        assert event["kind"] == "too_large"
        assert 2 <= len(it.requests) <= 8
        assert Counter(it.transcripts).most_common(1)[0][1] == 1


class TestAtTheGate:
    async def test_an_answer_cut_off_by_length_is_asked_again_with_more_room(self, server, bench):
        server.side_effect = [answer("Goal: the us", finish_reason="length"), answer(SUMMARY)]
        it = bench()

        assert_summary(await it.view())

        first, second = it.requests
        assert second["max_completion_tokens"] > first["max_completion_tokens"]
        assert first["messages"] == second["messages"]

    async def test_an_empty_answer_twice_is_a_digest(self, server, bench):
        server.side_effect = lambda request: answer("")
        it = bench()

        assert_digest(await it.view())

        assert len(it.requests) == 2
        [event] = it.events("context-summarize:failure")
        assert (event["kind"], event["attempts"]) == ("empty", 2)


class TestTheProviderItself:
    """The stand-in is true: each status is the error that the host's taxonomy has for it."""

    @pytest.mark.parametrize(
        ("response", "error", "retryable"),
        [
            (failure(429, "slow down"), RateLimitError, True),
            (failure(500, "oops"), ProviderUnavailableError, True),
            (httpx.Response(503, text="<html>"), ProviderUnavailableError, True),
            (failure(401, "no"), AuthenticationError, False),
            (failure(404, "no such model"), NotFoundError, False),
            (failure(413, "large"), ContextLengthError, False),
            (failure(400, TOO_LONG, "context_length_exceeded"), ContextLengthError, False),
            (failure(400, TOO_LONG), InvalidRequestError, False),
            (httpx.Response(200, text="{"), LLMError, False),
            (httpx.ReadTimeout("late"), LLMTimeoutError, True),
            (httpx.ConnectError("refused"), NetworkError, True),
        ],
    )
    async def test_what_goes_wrong_is_an_error_of_the_hosts_taxonomy(self, server, bench, response, error, retryable):
        server.side_effect = [response]
        it = bench()

        with pytest.raises(error) as caught:
            await it.provider.complete(ChatRequest(messages=[Message(role="user", content="Hello")]))

        assert type(caught.value) is error
        assert caught.value.retryable is retryable
        assert (caught.value.provider, caught.value.model) == ("chat", "chat-1")

    async def test_retry_after_is_seconds(self, server, bench):
        server.side_effect = [failure(429, "slow down", Retry_After="12")]

        with pytest.raises(RateLimitError) as caught:
            await bench().provider.complete(ChatRequest(messages=[Message(role="user", content="Hello")]))

        assert caught.value.retry_after == 12.0

    async def test_calls_come_back_as_calls(self, server, bench):
        function = {"name": "lookup", "arguments": '{"order": "ORD1"}'}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "function": function}]}
        usage = {"prompt_tokens": 5, "completion_tokens": 3}
        body = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}
        server.side_effect = [httpx.Response(200, json=body)]

        response = await bench().provider.complete(ChatRequest(messages=[Message(role="user", content="Hello")]))

        assert [call.arguments for call in response.tool_calls or ()] == [{"order": "ORD1"}]
        assert (response.finish_reason, response.usage.input_tokens) == ("tool_calls", 5)
