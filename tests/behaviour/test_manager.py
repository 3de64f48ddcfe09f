"""The manager: the host's methods, what may happen while summaries are made, budgets, floors, the meter, adoption."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from amplifier_core.llm_errors import NotFoundError, RateLimitError
from amplifier_core.message_models import ChatRequest

from context_summarize import Config, SummarizingContextManager
from context_summarize.core.nodes import CompactionRecord
from context_summarize.facts.fallback import FALLBACK_LINE
from context_summarize.messages.rows import JsonRow
from context_summarize.stores.memory import MemoryStore
from context_summarize.summaries.summarizer import own_call
from context_summarize.testing import ScriptedProvider, assistant, call, hook, result, tool_session, user
from tests.support.gated import Down, Gated, answer
from tests.support.kept import KeptStore
from tests.support.recorder import Recorder
from tests.support.views import nodes, size

SMALL: dict[str, Any] = {"segment_tokens": 64, "summary_tokens": 32, "fan_in": 2, "prefetch_threshold": None}
LARGE = 10**6


def scripted(**changes: Any) -> ScriptedProvider:
    return ScriptedProvider(**{"then": answer, **changes})


def manager(recorder: Recorder | None = None, **settings: Any) -> SummarizingContextManager:
    seams = {name: settings.pop(name) for name in ("store", "clock", "sleep") if name in settings}
    config = Config.from_mapping({**SMALL, "keep_recent": 4, **settings})
    return SummarizingContextManager(recorder, config=config, **seams)


async def fed(made: SummarizingContextManager, rows: list[JsonRow]) -> SummarizingContextManager:
    for row in rows:
        await made.add_message(row)
    return made


def digests(view: list[JsonRow]) -> int:
    return sum(1 for row in nodes(view) if FALLBACK_LINE in row["content"])


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


class TestContract:
    async def test_messages_are_given_back_as_they_were_added(self) -> None:
        """Rule 1: deep-equal, in order, whatever happened in between; copies."""
        rows = [*tool_session(8), hook("note"), {"role": "user", "content": None, "odd": {"deep": [1]}}]
        made, given = manager(), copy.deepcopy(rows)
        for row in given:
            await made.add_message(row)
            row.clear()
        await made.get_messages_for_request(900, scripted())
        await made.compact()
        got = await made.get_messages()
        assert got == rows == made.messages
        for row in got:
            row.clear()
        assert await made.get_messages() == rows

    async def test_the_messages_property_is_read_only(self) -> None:
        """Only add, set and clear change the history."""
        with pytest.raises(AttributeError):
            manager().messages = []  # type: ignore[misc]

    @pytest.mark.parametrize(
        "wrong",
        [
            None,
            "text",
            [],
            {},
            {"role": "nobody"},
            {"role": "tool", "content": "x"},
            {"role": "user", "content": object()},
        ],
    )
    async def test_a_wrong_row_changes_nothing(self, wrong: Any) -> None:
        """ValueError, and history and view are as they were."""
        made, rows = manager(), tool_session(8)
        await fed(made, rows)
        before = await made.get_messages_for_request(900, scripted())
        with pytest.raises(ValueError):
            await made.add_message(wrong)
        for messages in ([*rows[:3], wrong], [wrong], 5, None, "text", {"role": "user"}):
            with pytest.raises(ValueError):
                await made.set_messages(messages)  # type: ignore[arg-type]
        assert await made.get_messages() == rows
        assert await made.get_messages_for_request(900, scripted()) == before

    async def test_a_wrong_row_of_many_is_named(self) -> None:
        """By its place."""
        with pytest.raises(ValueError, match="message 2: unknown role"):
            await manager().set_messages([user("a"), user("b"), {"role": "x"}])

    async def test_asking_again_changes_nothing_and_costs_nothing(self) -> None:
        """Rule 4: hosts may ask three times a request."""
        made, provider, recorder = manager(rec := Recorder()), scripted(), rec
        await fed(made, tool_session(12))
        first = await made.get_messages_for_request(900, provider)
        calls, events = provider.calls, len(recorder.events)
        assert calls
        first_again = copy.deepcopy(first)
        for row in first:
            row.clear()
        for _ in range(2):
            assert await made.get_messages_for_request(900, provider) == first_again
        assert (provider.calls, len(recorder.events)) == (calls, events)

    async def test_rows_keep_the_order_of_the_calls(self) -> None:
        """Whether or not one of them takes long to count."""
        made = manager()
        rows = [user("long " * 20_000), user("short"), user("third")]
        await asyncio.gather(*(made.add_message(row) for row in rows))
        assert await made.get_messages() == rows
        assert await made.get_token_count() == size(rows)

    async def test_large_block_contents_are_counted_too(self) -> None:
        """Off the event loop."""
        rows = [user([{"type": "text", "text": "long " * 20_000}, "odd"])]
        assert await (await fed(manager(), rows)).get_token_count() == size(rows)

    async def test_added_rows_are_told_where_that_is_asked_for(self) -> None:
        """debug: context:message_added:debug."""
        recorder = Recorder()
        await fed(manager(recorder, debug=True), [user("hello there")])
        assert recorder.events == [
            ("context:message_added:debug", {"role": "user", "tokens": size([user("hello there")]), "message_count": 1})
        ]
        silent = Recorder()
        await fed(manager(silent), [user("hello")])
        assert silent.events == []

    async def test_it_works_without_a_host_and_without_a_provider(self) -> None:
        """Settings as keywords; digests stand in."""
        made = SummarizingContextManager(max_tokens=900, keep_recent=4, **SMALL)
        await fed(made, tool_session(12))
        view = await made.get_messages_for_request()
        assert size(view) <= 900
        assert digests(view) == len(nodes(view)) > 0

    async def test_config_and_settings_together_are_refused(self) -> None:
        """One of them would be ignored."""
        with pytest.raises(TypeError, match="not both"):
            SummarizingContextManager(config=Config(), keep_recent=3)

    async def test_closing_ends_the_work_under_way(self) -> None:
        """No task is left."""
        provider = Gated()
        made = await fed(manager(), tool_session(12))
        request = asyncio.create_task(made.get_messages_for_request(900, provider))
        await provider.asked.wait()
        await made.close()
        await asyncio.wait_for(request, 10)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


class TestSetMessages:
    async def test_a_longer_history_goes_on_where_it_was(self) -> None:
        """Nothing is counted, cut or summarised again."""
        made, provider, rows = manager(), scripted(), tool_session(8)
        await fed(made, rows)
        before = await made.get_messages_for_request(900, provider)
        calls = provider.calls
        await made.set_messages([*rows, user("more")])
        after = await made.get_messages_for_request(900, provider)
        assert after == [*before, user("more")]
        assert provider.calls == calls
        await made.set_messages([*rows, user("more")])
        assert await made.get_messages_for_request(900, provider) == after

    async def test_any_iterable_of_rows_will_do(self) -> None:
        """A generator, a tuple."""
        made = manager()
        await made.set_messages(row for row in tool_session(2))
        assert await made.get_messages() == tool_session(2)

    @pytest.mark.parametrize("at", [0, 20, 30])
    async def test_a_repaired_history_keeps_the_summaries_of_its_unchanged_prefix(self, at: int) -> None:
        """Their keys are found again; only what has changed is asked for."""
        made, provider, rows = manager(), scripted(), tool_session(12)
        await fed(made, rows)
        await made.get_messages_for_request(900, provider)
        calls = provider.calls
        repaired = copy.deepcopy(rows)
        repaired[at]["content"] = "Please look up another order."
        await made.set_messages(repaired)
        assert await made.get_messages() == repaired
        view = await made.get_messages_for_request(900, provider)
        assert size(view) <= 900
        assert provider.calls - calls <= (calls if at == 0 else calls - 2)

    async def test_a_transcript_without_hook_rows_is_still_the_same_conversation(self) -> None:
        """Filtered by the host: the record of the last boundary is found, no call, no event."""
        rows = [row for made_row in tool_session(12) for row in (made_row, hook("note"))]
        made, provider = manager(rec := Recorder()), scripted()
        await fed(made, rows)
        before = await made.get_messages_for_request(900, provider)
        calls, boundaries = provider.calls, rec.boundaries
        await made.set_messages(tool_session(12))
        after = await made.get_messages_for_request(900, provider)
        assert nodes(after) == nodes(before)
        assert (provider.calls, rec.boundaries) == (calls, boundaries)

    async def test_a_shorter_history_replaces_the_longer_one(self) -> None:
        """A rewound session."""
        made = await fed(manager(), tool_session(8))
        await made.set_messages(tool_session(2))
        assert await made.get_messages() == tool_session(2)
        assert await made.get_messages_for_request(LARGE) == tool_session(2)

    async def test_many_uncounted_rows_are_counted_when_first_needed(self) -> None:
        """In a thread."""
        made = manager()
        await made.set_messages(tool_session(80))
        assert await made.get_token_count() == size(tool_session(80))
        await made.set_messages([*tool_session(80), *tool_session(80, start=80)])
        assert await made.get_token_count() == size(tool_session(160))


class TestClear:
    async def test_the_conversation_is_forgotten(self) -> None:
        """History and view; summaries stay stored, under keys that nobody asks for."""
        made, provider = manager(), scripted()
        await fed(made, tool_session(12))
        first = await made.get_messages_for_request(900, provider)
        await made.clear()
        assert await made.get_messages() == []
        assert await made.get_messages_for_request(900, provider) == []
        assert await made.get_token_count() == 0
        calls = provider.calls
        await fed(made, tool_session(12))
        assert nodes(await made.get_messages_for_request(900, provider)) == nodes(first)
        assert provider.calls == calls

    async def test_keys_that_were_given_up_are_asked_for_again(self) -> None:
        """Refused three times: a digest until clear()."""
        made, provider = manager(), scripted(then="")

        async def asked(start: int, budget: int = 700) -> list[str]:
            before = provider.calls
            await fed(made, tool_session(6, start=start))
            await made.get_messages_for_request(budget, provider)
            return [str(request.messages[1].content) for request in provider.requests[before:]]

        first = await asked(0)
        for start in (6, 12, 18):
            last = await asked(start)
        assert not set(last) & set(first)
        await made.clear()
        await fed(made, tool_session(6))
        assert set(await asked(6, 500)) & set(first), (
            "the boundary that was adopted does not fit, and yet nobody is asked"
        )


class TestWhileSummariesAreMade:
    async def test_concurrent_requests_share_one_call_a_key(self) -> None:
        """Rule 10: and give equal views."""
        alone, lonely = scripted(), await fed(manager(), tool_session(12))
        await lonely.get_messages_for_request(900, alone)
        provider, made = Gated(), await fed(manager(), tool_session(12))
        requests = [asyncio.create_task(made.get_messages_for_request(900, provider)) for _ in range(20)]
        await provider.asked.wait()
        provider.go.set()
        views = await asyncio.gather(*requests)
        assert all(view == views[0] for view in views)
        assert provider.calls == alone.calls
        questions = [str(request.messages[1].content) for request in provider.requests]
        assert len(questions) == len(set(questions))

    async def test_a_row_that_comes_meanwhile_is_kept_and_shown(self) -> None:
        """add_message waits for nobody."""
        provider, made = Gated(), await fed(manager(), tool_session(12))
        request = asyncio.create_task(made.get_messages_for_request(900, provider))
        await provider.asked.wait()
        await made.add_message(user("meanwhile"))
        assert (await made.get_messages())[-1] == user("meanwhile")
        provider.go.set()
        assert (await request)[-1] == user("meanwhile")
        assert (await made.get_messages_for_request(900, provider))[-1] == user("meanwhile")

    @pytest.mark.parametrize("how", ["set", "clear"])
    async def test_a_history_that_is_replaced_meanwhile_has_no_stale_node(self, how: str) -> None:
        """The view is that of the new history."""
        provider, made = Gated(), await fed(manager(rec := Recorder()), tool_session(12))
        request = asyncio.create_task(made.get_messages_for_request(900, provider))
        await provider.asked.wait()
        fresh = [user("another conversation"), assistant("yes")] if how == "set" else []
        await (made.set_messages(fresh) if how == "set" else made.clear())
        provider.go.set()
        assert await request == fresh
        assert await made.get_messages_for_request(900, provider) == fresh
        assert rec.boundaries == 0
        assert len(rec.of("context:pre_compact")) == len(rec.of("context:post_compact")) == 1

    async def test_compact_of_a_history_that_is_replaced_meanwhile_saves_nothing(self) -> None:
        """It says 0."""
        provider, made = Gated(), await fed(manager(), tool_session(12))
        await made.get_messages_for_request(LARGE, provider)
        compacting = asyncio.create_task(made.compact())
        await provider.asked.wait()
        await made.clear()
        provider.go.set()
        assert await compacting == 0
        assert await made.get_messages_for_request(LARGE, provider) == []

    async def test_a_cancelled_request_leaves_everything_as_it_was(self) -> None:
        """Rule 9: and the answer still fills the cache, so that no key is asked for twice."""
        provider, made, rows = Gated(), manager(rec := Recorder()), tool_session(12)
        await fed(made, rows)
        state, count = made.conversation.view, await made.get_token_count()
        request = asyncio.create_task(made.get_messages_for_request(900, provider))
        await provider.asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert made.conversation.view is state
        assert await made.get_token_count() == count
        assert await made.get_messages() == rows
        provider.go.set()
        await settle()
        asked = provider.calls
        assert asked
        view = await made.get_messages_for_request(900, provider)
        assert size(view) <= 900
        questions = [str(request.messages[1].content) for request in provider.requests]
        assert len(questions) == len(set(questions)), "the retry makes no second call for the same key"
        assert provider.cancelled == 0
        assert len(rec.of("context:pre_compact")) == len(rec.of("context:post_compact")) == rec.boundaries == 1

    async def test_a_request_cancelled_before_it_begins_waits_for_nothing(self) -> None:
        """The lock is free again."""
        provider, made = Gated(), await fed(manager(), tool_session(12))
        first = asyncio.create_task(made.get_messages_for_request(900, provider))
        await provider.asked.wait()
        second = asyncio.create_task(made.get_messages_for_request(900, provider))
        await settle()
        second.cancel()
        provider.go.set()
        assert size(await first) <= 900
        assert await asyncio.gather(second, return_exceptions=True)
        assert await made.get_messages_for_request(900, provider) == await first


class TestSystemPrompt:
    async def test_the_factory_is_called_once_a_view(self) -> None:
        """Its prompt comes first, and stored system rows are hidden, hook rows aside."""
        made = await fed(manager(), [{"role": "system", "content": "stored"}, hook("note"), user("hi")])
        calls: list[int] = []

        async def factory() -> str:
            calls.append(1)
            return f"PROMPT {len(calls)}"

        await made.set_system_prompt_factory(factory)
        assert calls == []
        view = await made.get_messages_for_request(LARGE)
        assert [row["content"] for row in view] == ["PROMPT 1", "note", "hi"]
        assert len(calls) == 1
        view = await made.get_messages_for_request(LARGE)
        assert [row["content"] for row in view] == ["PROMPT 2", "note", "hi"]
        assert len(calls) == 2
        assert await made.get_token_count() == size(view)

    async def test_without_a_factory_stored_rows_are_shown_again(self) -> None:
        """None takes it away."""

        async def factory() -> str:
            return "PROMPT"

        made = await fed(manager(), [{"role": "system", "content": "stored"}, user("hi")])
        await made.set_system_prompt_factory(factory)
        await made.get_messages_for_request(LARGE)
        await made.set_system_prompt_factory(None)
        assert [row["content"] for row in await made.get_messages_for_request(LARGE)] == ["stored", "hi"]

    async def test_a_factory_that_raises_costs_no_request(self, caplog: pytest.LogCaptureFixture) -> None:
        """Stored rows stand until it has answered once; then its last prompt does."""
        answers: list[Any] = [RuntimeError("no"), "PROMPT", RuntimeError("no"), None]

        async def factory() -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        made = await fed(manager(), [{"role": "system", "content": "stored"}, user("hi")])
        await made.set_system_prompt_factory(factory)
        seen = [[row["content"] for row in await made.get_messages_for_request(LARGE)] for _ in range(4)]
        assert seen == [["stored", "hi"], ["PROMPT", "hi"], ["PROMPT", "hi"], ["stored", "hi"]]
        assert sum("system prompt factory failed" in record.message for record in caplog.records) == 2

    async def test_the_prompt_counts_against_the_budget(self) -> None:
        """A longer one makes a boundary of what fitted before."""
        prompts = ["short", "rule " * 300]

        async def factory() -> str:
            return prompts[0]

        made, provider = await fed(manager(), tool_session(4)), scripted()
        await made.set_system_prompt_factory(factory)
        budget = await made.get_token_count() + 100
        auto = await made.get_messages_for_request(budget * 3, provider)
        assert nodes(auto) == []
        prompts.pop(0)
        view = await made.get_messages_for_request(budget, provider)
        assert nodes(view)
        assert size(view) <= budget

    async def test_stored_rows_are_hidden_whatever_preserve_system_says(self) -> None:
        """Stored system rows are then hidden, except hook rows."""

        async def factory() -> str:
            return "PROMPT"

        made = await fed(manager(preserve_system=False), [{"role": "system", "content": "stored"}, user("hi")])
        await made.set_system_prompt_factory(factory)
        assert [row["content"] for row in await made.get_messages_for_request(LARGE)] == ["PROMPT", "hi"]


class TestBudget:
    async def budget(self, made: SummarizingContextManager, *args: Any, recorder: Recorder) -> int:
        await fed(made, tool_session(12, size=4_000))
        await made.get_messages_for_request(*args)
        return int(recorder.of("context:pre_compact")[0]["budget"])

    @pytest.mark.parametrize(
        ("argument", "window", "max_tokens", "budget"),
        [
            (3_000, (9_000, 1_000), None, 3_000),
            (None, (9_000, 1_000), None, 7_000),
            (None, (9_000, 1_000), 2_500, 2_500),
            (3_000, (9_000, 1_000), 2_500, 2_500),
            (2_000, (9_000, 1_000), 2_500, 2_000),
            (None, (4_000, 3_500), None, 2_000),
        ],
    )
    async def test_argument_then_window_then_max_tokens(
        self, argument: int | None, window: tuple[int, int], max_tokens: int | None, budget: int
    ) -> None:
        """max_tokens is always an upper bound; half the window where output and margin leave nothing."""
        recorder = Recorder()
        provider = scripted(context_window=window[0], max_output_tokens=window[1])
        made = manager(recorder, max_tokens=max_tokens)
        assert await self.budget(made, argument, provider, recorder=recorder) == budget

    async def test_without_any_of_them_it_is_max_tokens(self) -> None:
        """No provider is known."""
        recorder = Recorder()
        assert await self.budget(manager(recorder, max_tokens=2_500), recorder=recorder) == 2_500

    async def test_segments_are_derived_from_the_first_budget_and_fixed(self) -> None:
        """A power of two near an eighth of it; anew only when that exceeds a quarter of a later budget."""
        made = manager(segment_tokens=None, summary_tokens=None)
        await fed(made, tool_session(2))
        for budget, sizes in (
            (40_000, (4_096, 409)),
            (100_000, (4_096, 409)),
            (17_000, (4_096, 409)),
            (16_000, (2_048, 204)),
            (100_000, (2_048, 204)),
            (1_000, (512, 100)),
            (100, (512, 100)),
        ):
            await made.get_messages_for_request(budget)
            assert made.conversation.builder.segment_sizes == sizes

    async def test_new_sizes_go_on_behind_what_is_folded(self) -> None:
        """The frontier never moves back, and no segment is cut twice."""
        made, provider = manager(segment_tokens=None, summary_tokens=None), scripted()
        await fed(made, tool_session(60, size=1_200))
        first = await made.get_messages_for_request(8_000, provider)
        frontier = made.conversation.view.frontier
        assert frontier
        await fed(made, tool_session(20, size=1_200, start=60))
        await made.get_messages_for_request(3_000, provider)
        assert made.conversation.view.frontier > frontier
        edges = [(node.node.first_group, node.node.end_group) for node in made.conversation.view.nodes]
        assert [first for first, _ in edges] == [0, *(end for _, end in edges[:-1])]
        assert nodes(first)

    async def test_a_session_resumed_with_a_smaller_window_gets_shorter_segments(self) -> None:
        """Derived anew when a segment exceeds a quarter of a later budget: also of the first one after a restart."""
        store, settings = MemoryStore(), {"segment_tokens": None, "summary_tokens": None}
        before = await fed(manager(store=store, **settings), tool_session(60, size=4_000))
        await before.get_messages_for_request(40_000, scripted())
        after = await fed(manager(store=store, **settings), tool_session(60, size=4_000))
        await after.get_messages_for_request(10_000, scripted())
        assert after.conversation.builder.segment_sizes is not None
        assert after.conversation.builder.segment_sizes[0] <= 2_500


def _refusing_other_models(request: ChatRequest) -> str:
    if request.model is not None:
        raise NotFoundError(f"no model {request.model}")
    return answer(request)


class TestProviders:
    async def asked(
        self, made: SummarizingContextManager, *providers: ScriptedProvider, passed: Any = None
    ) -> list[int]:
        await fed(made, tool_session(12))
        await made.get_messages_for_request(900, passed)
        return [provider.calls for provider in providers]

    async def test_the_provider_that_is_passed_writes_the_summaries(self) -> None:
        """Not another one that is mounted."""
        passed, mounted = scripted(), scripted()
        calls = await self.asked(manager(Recorder({"main": mounted})), passed, mounted, passed=passed)
        assert calls[0] > 0
        assert calls[1] == 0

    async def test_else_the_last_one_seen(self) -> None:
        """Of an earlier request."""
        seen, mounted = scripted(), scripted()
        made = manager(Recorder({"main": mounted}))
        await made.get_messages_for_request(900, seen)
        calls = await self.asked(made, seen, mounted)
        assert calls[0] > 0
        assert calls[1] == 0

    async def test_else_the_first_one_mounted(self) -> None:
        """Found at request time."""
        first, second = scripted(), scripted()
        recorder = Recorder()
        made = manager(recorder)
        recorder.providers = {"a": first, "b": second}
        calls = await self.asked(made, first, second)
        assert calls[0] > 0
        assert calls[1] == 0

    async def test_summary_provider_and_summary_model(self) -> None:
        """By the name under which it is mounted; the model is named in the request and to complete()."""
        main, small = scripted(), scripted()
        recorder = Recorder({"main": main, "small": small})
        made = manager(recorder, summary_provider="small", summary_model="tiny-1")
        calls = await self.asked(made, main, small, passed=main)
        assert calls[0] == 0
        assert calls[1] > 0
        assert {request.model for request in small.requests} == {"tiny-1"}
        assert {options["model"] for options in small.options} == {"tiny-1"}
        told = recorder.of("context-summarize:summary")
        assert {(data["provider"], data["model"]) for data in told} == {("small", "tiny-1")}

    async def test_a_name_that_is_not_mounted_is_an_error_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        """The session's own provider is used."""
        main = scripted()
        made = manager(Recorder({"main": main}), summary_provider="smal")
        made.check_providers()
        calls = await self.asked(made, main)
        assert calls[0] > 0
        [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "'smal'" in record.getMessage()
        assert "main" in record.getMessage()

    async def test_a_fallback_provider_is_not_asked_for_the_model_of_another(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It does not know the name, and would refuse every summary; the log says both."""
        main = ScriptedProvider(then=_refusing_other_models, context_window=6_000, max_output_tokens=500)
        recorder = Recorder({"main": main})
        made = manager(recorder, summary_provider="smal", summary_model="tiny-1")
        assert (await self.asked(made, main))[0] > 0
        assert {request.model for request in main.requests} == {None}
        assert recorder.of("context-summarize:failure") == []
        [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "'smal' is not mounted (mounted: main); the session's own provider writes" in record.getMessage()
        assert "without summary_model 'tiny-1'" in record.getMessage()


class TestWhen:
    async def test_nothing_happens_below_the_threshold(self) -> None:
        """Usage of seven tenths makes a boundary, less does not, where that is what is set."""
        made, provider = await fed(manager(compact_threshold=0.7, target_usage=0.3), tool_session(12)), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(int(tokens / 0.69), provider)) == []
        assert provider.calls == 0
        view = await made.get_messages_for_request(int(tokens / 0.71), provider)
        assert nodes(view)
        assert size(view) <= 0.3 * tokens / 0.71 + 100

    async def test_between_boundaries_a_view_grows_at_its_end(self) -> None:
        """Rule 5: the earlier view is a prefix of the later one."""
        made, provider = manager(rec := Recorder()), scripted()
        before: list[JsonRow] = []
        boundaries = 0
        for row in tool_session(40):
            await made.add_message(row)
            view = await made.get_messages_for_request(1_500, provider)
            assert size(view) <= 1_500
            if rec.boundaries == boundaries:
                assert view[: len(before)] == before
            before, boundaries = view, rec.boundaries
        assert boundaries >= 3

    async def test_auto_compact_false_makes_boundaries_only_to_fit(self) -> None:
        """And on compact()."""
        made, provider = await fed(manager(auto_compact=False), tool_session(12)), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(tokens, provider)) == []
        assert nodes(await made.get_messages_for_request(tokens - 1, provider))

    async def test_truncate_makes_no_provider_call(self) -> None:
        """compaction_strategy: digests only."""
        made, provider = await fed(manager(compaction_strategy="truncate"), tool_session(12)), scripted()
        view = await made.get_messages_for_request(900, provider)
        assert digests(view) == len(nodes(view)) > 0
        assert provider.calls == 0

    async def test_no_boundary_that_frees_less_than_min_fold(self) -> None:
        """The prompt cache is not thrown away for little, unless the view does not fit."""
        rows = [user("question " * 900), *tool_session(4, size=100)]
        made, provider = await fed(manager(rec := Recorder(), min_fold=0.5), rows), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(int(tokens / 0.8), provider)) == []
        assert (rec.boundaries, provider.calls) == (0, 0)
        view = await made.get_messages_for_request(tokens - 1, provider)
        assert size(view) < tokens
        assert rec.boundaries == 1

    async def test_a_compaction_is_weighed_once_for_a_history_and_a_budget(self) -> None:
        """With nothing added, what has become cheaper meanwhile changes no view: only a row or a budget does."""
        made, provider = await fed(manager(min_fold=1.0), tool_session(8)), scripted()
        budget = int(await made.get_token_count() / 0.8)
        before = await made.get_messages_for_request(budget, provider)
        await made.observe_response("llm:response", {"usage": {"input_tokens": budget}})
        assert await made.get_messages_for_request(budget, provider) == before
        assert (await made.statistics()).requests == 1

    async def test_a_window_that_shrinks_in_mid_session_is_obeyed_at_once(self) -> None:
        """Another provider, a smaller model."""
        made = await fed(manager(), tool_session(20))
        assert size(await made.get_messages_for_request(provider=scripted(context_window=40_000))) > 3_000
        small = scripted(context_window=2_000, max_output_tokens=200)
        for row in tool_session(2, start=20):
            await made.add_message(row)
            assert size(await made.get_messages_for_request(provider=small)) <= 800

    async def test_a_row_larger_than_the_window_is_shortened_to_fit(self) -> None:
        """The history keeps it."""
        made = await fed(manager(), [*tool_session(2), user("word " * 9_000)])
        view = await made.get_messages_for_request(1_000, scripted())
        assert size(view) <= 1_000
        assert "characters left out" in view[-1]["content"]
        assert (await made.get_messages())[-1] == user("word " * 9_000)

    async def test_a_conversation_that_repeats_itself_keeps_its_ranges(self) -> None:
        """Nodes stand side by side from the first row to the frontier: none twice, none missing."""
        made, provider = manager(), scripted()
        for _ in range(40):
            await fed(
                made, [user("Is the build done? " * 8), call("c", "poll"), result("c", "no " * 60), assistant("No.")]
            )
            view = await made.get_messages_for_request(1_500, provider)
            ranges = [row["metadata"]["messages"] for row in nodes(view)]
            assert [first for first, _ in ranges] == [last + 1 for _, last in [(0, 0), *ranges][: len(ranges)]]

    async def test_a_window_that_grows_again_shows_summaries_again(self) -> None:
        """One-line nodes are for what does not fit otherwise; the text is in the store."""
        made, provider = await fed(manager(keep_recent=0, fan_in=50, summary_share=1.0), tool_session(3)), scripted()
        assert "no room for a summary" in str(await made.get_messages_for_request(110, provider))
        await fed(made, tool_session(18, start=3))
        assert "no room for a summary" not in str(await made.get_messages_for_request(2_500, provider))


class TestCompact:
    async def test_it_folds_down_to_keep_recent_and_says_what_it_saved(self) -> None:
        """Whatever min_fold and the threshold; the newest part as a rest node."""
        made = await fed(manager(min_fold=1.0, segment_tokens=512, summary_tokens=64), tool_session(12))
        provider = scripted()
        await made.get_messages_for_request(LARGE, provider)
        before = await made.get_token_count()
        saved = await made.compact()
        after = await made.get_token_count()
        assert saved == before - after > 0
        view = await made.get_messages_for_request(LARGE, provider)
        assert size(view) == after
        assert made.conversation.view.nodes[-1].node.is_rest
        assert nodes(view)[-1]["metadata"]["messages"][1] == 44
        assert [row["content"] for row in view[-3:]] == [row["content"] for row in tool_session(12)[-3:]]

    async def test_focus_reaches_only_the_user_row_of_the_rest(self) -> None:
        """Never the instructions, and no other summary."""
        made, provider = await fed(manager(segment_tokens=512, summary_tokens=64), tool_session(14)), scripted()
        await made.get_messages_for_request(LARGE, provider)
        await made.compact("the SHIPPING dates")
        told = [request for request in provider.requests if "SHIPPING" in str(request.messages)]
        assert len(provider.requests) > 1
        [request] = told
        assert "SHIPPING" not in str(request.messages[0].content)
        assert "SHIPPING" in str(request.messages[1].content)

    async def test_the_last_requests_provider_and_budget_are_used(self) -> None:
        """compact() is given neither."""
        made, provider = manager(rec := Recorder(), elide_tool_results=None), scripted()
        await fed(made, tool_session(6))
        await made.get_messages_for_request(12_345, provider)
        await made.compact()
        [told] = rec.of("context:pre_compact")
        assert (told["budget"], told["reason"]) == (12_345, "manual")
        assert provider.calls

    async def test_again_it_saves_nothing_and_asks_nobody(self) -> None:
        """There is nothing left to fold."""
        made, provider = await fed(manager(rec := Recorder()), tool_session(12)), scripted()
        await made.get_messages_for_request(LARGE, provider)
        await made.compact()
        calls, boundaries = provider.calls, rec.boundaries
        assert await made.compact("something else") == 0
        assert (provider.calls, rec.boundaries) == (calls, boundaries)

    @pytest.mark.parametrize("rows", [[], [user("hi")], tool_session(1)])
    async def test_where_there_is_little_it_saves_nothing(self, rows: list[JsonRow]) -> None:
        """All of it is recent."""
        made = await fed(manager(), rows)
        assert await made.compact() == 0
        assert await made.get_messages_for_request(LARGE) == rows

    @pytest.mark.parametrize("keep", [0, 2])
    async def test_it_never_makes_the_view_larger(self, keep: int) -> None:
        """What users complain about first: compaction made it bigger."""
        rows = [user("Please " + "look there " * 60), assistant("done"), user("thanks, next?"), assistant("sure")]
        made, provider = await fed(manager(keep_recent=keep), rows), scripted()
        await made.get_messages_for_request(LARGE, provider)
        assert await made.compact() >= 0


class TestFloors:
    """A system prompt larger than the budget: the smallest view, one warning, one event, few boundaries."""

    async def boundaries(
        self, turns: int, *, words: int = 0, asks: int = 1, repair: bool = False, caplog: Any = None
    ) -> list[int]:
        """Compaction events so far, after each turn."""
        made, provider = manager(rec := Recorder(), keep_recent=2), scripted()

        async def factory() -> str:
            return "rule word " * 500

        await made.set_system_prompt_factory(factory)
        rows: list[JsonRow] = []
        seen = []
        for turn in range(turns):
            rows += [user(f"q {turn}"), assistant(f"a {turn} " + "w " * words)]
            if repair:
                await made.add_message(hook("x"))
                await made.set_messages(rows)
            else:
                await fed(made, rows[-2:])
            for _ in range(asks):
                await made.get_messages_for_request(600, provider)
            seen.append(rec.boundaries)
        assert len(rec.of("context-summarize:over_budget")) == 1
        assert len(rec.of("context:pre_compact")) == len(rec.of("context:post_compact"))
        return seen

    def most_in_ten(self, seen: list[int]) -> int:
        return max(after - before for before, after in zip([0, *seen], seen[9:], strict=False))

    @pytest.mark.parametrize("words", [0, 10])
    async def test_at_most_two_compaction_events_in_ten_requests(
        self, words: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """And one warning that names the largest rows."""
        seen = await self.boundaries(30, words=words)
        assert seen[-1] > 0
        assert self.most_in_ten(seen) <= 2
        [warning] = [record for record in caplog.records if "smallest view" in record.message]
        assert "row 0 (system, " in warning.getMessage()

    async def test_also_where_each_would_free_min_fold(self) -> None:
        """969 compactions in 988 requests because one row could not shrink."""
        assert self.most_in_ten(await self.boundaries(30, words=80)) <= 2

    async def test_also_where_the_host_asks_three_times_a_request(self) -> None:
        """Newer loops do: asking again is no further request."""
        assert self.most_in_ten(await self.boundaries(30, words=80, asks=3)) <= 2

    async def test_also_where_the_host_repairs_the_transcript_every_turn(self) -> None:
        """set_messages may be called every turn."""
        assert self.most_in_ten(await self.boundaries(30, repair=True)) <= 2

    async def test_a_view_that_fits_again_may_be_warned_of_again(self, caplog: pytest.LogCaptureFixture) -> None:
        """Warn once per cause."""
        rows: list[JsonRow] = [{"role": "system", "content": "rule " * 900}, user("a")]
        made = await fed(manager(rec := Recorder()), rows)
        for budget in (300, 300, LARGE, 300, 300):
            await made.get_messages_for_request(budget, scripted())
        assert len(rec.of("context-summarize:over_budget")) == 2
        assert len(caplog.records) == 2

    async def test_a_sole_user_message_given_as_blocks_is_shortened(self) -> None:
        """Fits where the rules allow."""
        made = await fed(manager(), [user([{"type": "text", "text": "word " * 5_000}])])
        assert size(await made.get_messages_for_request(500, scripted())) <= 500


class TestMeter:
    async def made(self) -> tuple[SummarizingContextManager, int]:
        made = await fed(manager(), tool_session(12))
        await made.get_messages_for_request(LARGE)
        return made, await made.get_token_count()

    async def test_a_response_corrects_the_estimate(self) -> None:
        """By its input tokens and what it wrote to the cache."""
        made, tokens = await self.made()
        usage = {"input_tokens": tokens, "cache_write_tokens": 500, "cache_read_tokens": 77}
        await made.observe_response("llm:response", {"status": "ok", "usage": usage})
        assert await made.get_token_count() == tokens + 500

    async def test_the_correction_rules_the_next_weighing(self) -> None:
        """What fits by our count may not fit by the provider's."""
        made, tokens = await self.made()
        await made.observe_response("llm:response", {"usage": {"input_tokens": tokens + 2_000}})
        await made.add_message(user("more"))
        provider = scripted()
        view = await made.get_messages_for_request(tokens + 2_100, provider)
        assert nodes(view), "usage is above the threshold now"
        assert await made.get_token_count() == size(view) + 2_000

    @pytest.mark.parametrize(
        "data",
        [
            {"status": "error", "usage": {"input_tokens": 2_000}},
            {"status": "ok"},
            {"usage": "2000 tokens"},
            {"usage": {"input_tokens": 40}},
            {"usage": {"input_tokens": 10**9}},
            {"usage": {"input_tokens": "2000"}},
            "nothing",
        ],
    )
    async def test_errors_helpers_and_impossible_figures_change_nothing(self, data: Any) -> None:
        """Small helpers' calls are told by their size."""
        made, tokens = await self.made()
        await made.observe_response("llm:response", data)
        assert await made.get_token_count() == tokens

    async def test_our_own_calls_change_nothing(self) -> None:
        """Marked by a contextvar: a provider that emits inside complete() is seen to do so for us."""
        made = await fed(manager(), tool_session(12))
        marks: list[bool] = []

        class Emitting(ScriptedProvider):
            async def complete(self, request: ChatRequest, **kwargs: Any) -> Any:
                marks.append(own_call.get())
                await made.observe_response("llm:response", {"usage": {"input_tokens": 1_500}})
                return await super().complete(request, **kwargs)

        await made.get_messages_for_request(LARGE)
        view = await made.get_messages_for_request(900, Emitting(then=answer))
        assert marks
        assert all(marks)
        assert await made.get_token_count() == size(view)
        assert own_call.get() is False

    async def test_a_correction_does_not_change_the_view_that_was_served(self) -> None:
        """Rule 4: nothing added, the same budget, an equal view."""
        made = await fed(manager(), tool_session(12))
        provider, budget = scripted(), int(await made.get_token_count() / 0.65)
        before = await made.get_messages_for_request(budget, provider)
        await made.observe_response("llm:response", {"usage": {"input_tokens": int(budget * 0.9)}})
        assert await made.get_messages_for_request(budget, provider) == before


class TestFailingProvider:
    async def test_digests_stand_in_until_the_next_boundary_after_recovery(self) -> None:
        """Rule 8: no request is lost, and model summaries are back within one boundary."""
        clock = SimpleNamespace(now=0.0)

        async def sleep(seconds: float) -> None:
            clock.now += seconds

        made = manager(rec := Recorder(), clock=lambda: clock.now, sleep=sleep, retry_attempts=1)
        provider = Down(RateLimitError("slow down"))
        await fed(made, tool_session(12))
        view = await made.get_messages_for_request(900, provider)
        assert digests(view) == len(nodes(view)) > 0
        assert size(view) <= 900
        assert rec.of("context-summarize:failure")
        assert rec.of("context:post_compact")[-1]["digests"] == digests(view)
        provider.mend()
        clock.now += 3_600
        await fed(made, tool_session(12, start=12))
        view = await made.get_messages_for_request(900, provider)
        assert nodes(view)
        assert digests(view) == 0
        assert rec.of("context:post_compact")[-1]["digests"] == 0

    async def test_a_digest_is_never_found_in_the_store(self) -> None:
        """Rule 10."""
        store = MemoryStore()
        made = await fed(manager(store=store, retry_attempts=1), tool_session(12))
        view = await made.get_messages_for_request(900, scripted(then=ValueError("broken")))
        keys = [row["metadata"]["key"] for row in nodes(view)]
        assert keys
        assert await store.get(keys) == {}


def saved(rows: list[JsonRow]) -> list[JsonRow]:
    """Rows as a host saves them: no system or developer rows, no thinking, no None values; through JSON."""
    kept = []
    for row in rows:
        if row["role"] in ("system", "developer"):
            continue
        content = row.get("content")
        if isinstance(content, list):
            content = [block for block in content if block.get("type") != "thinking"]
        kept.append({k: v for k, v in {**row, "content": content}.items() if v is not None and k != "thinking_block"})
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


class SlowStore(KeptStore):
    """Holds the first look for a record until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def find_records(self, digests: Sequence[str]) -> list[CompactionRecord]:
        found = await super().find_records(digests)
        if not self.entered.is_set():
            self.entered.set()
            await self.go.wait()
        return found


class TestAdoption:
    async def session(self, **settings: Any) -> tuple[KeptStore, list[JsonRow], list[JsonRow]]:
        """(store, history, view) of a session with boundaries, merges and rows of every kind."""
        thinking = {"type": "thinking", "thinking": "hm", "signature": None}
        rows: list[JsonRow] = [{"role": "system", "content": "be kind"}]
        for row in tool_session(30):
            if row["role"] == "assistant" and isinstance(row["content"], str):
                row = {
                    **row,
                    "content": [thinking, {"type": "text", "text": row["content"]}],
                    "thinking_block": thinking,
                }
            rows += [{**row, "extra": None}, *([hook("note")] if row["role"] == "user" else [])]
        store = KeptStore()
        made, provider = manager(store=store, **settings), scripted()
        view: list[JsonRow] = []
        for row in rows:
            await made.add_message(row)
            view = await made.get_messages_for_request(1_500, provider)
        assert nodes(view)
        return store, rows, view

    @pytest.mark.parametrize("how", ["same", "saved"])
    @pytest.mark.parametrize("feed", ["add", "set"])
    async def test_a_resumed_session_starts_where_it_was(self, how: str, feed: str) -> None:
        """Same nodes, no call, no boundary: also after a host has saved and read the rows."""
        store, rows, before = await self.session()
        again = rows if how == "same" else saved(rows)
        made, provider = manager(rec := Recorder(), store=store), scripted()
        if feed == "add":
            await fed(made, again)
        else:
            await made.set_messages(again)
        view = await made.get_messages_for_request(1_500, provider)
        assert nodes(view) == nodes(before)
        assert (provider.calls, rec.boundaries) == (0, 0)
        assert await made.get_token_count() == size(view)
        if how == "same":
            assert [row["role"] for row in view] == [row["role"] for row in before]

    async def test_it_goes_on_like_the_one_that_was_not_interrupted(self) -> None:
        """The same boundaries from then on."""
        store, rows, _ = await self.session()
        whole, provider = manager(store=MemoryStore()), scripted()
        for row in rows:
            await whole.add_message(row)
            await whole.get_messages_for_request(1_500, provider)
        resumed = await fed(manager(store=store), rows)
        for row in tool_session(20, start=30):
            await whole.add_message(row)
            await resumed.add_message(row)
            ours = await whole.get_messages_for_request(1_500, provider)
            assert nodes(await resumed.get_messages_for_request(1_500, provider)) == nodes(ours)

    async def test_token_count_alone_adopts_too(self) -> None:
        """The size of the view as it would be served."""
        store, rows, before = await self.session()
        made = await fed(manager(store=store), rows)
        assert await made.get_token_count() == size(before)

    async def test_a_fork_adopts_what_it_shares(self) -> None:
        """The longest record that matches."""
        store, rows, before = await self.session()
        fork = [*rows[:60], user("and now for something else")]
        made, provider = await fed(manager(store=store), fork), scripted()
        view = await made.get_messages_for_request(1_500, provider)
        assert provider.calls == 0
        assert nodes(view)
        assert nodes(view) != nodes(before)

    @pytest.mark.parametrize(
        "settings", [{"fan_in": 3}, {"segment_tokens": 128}, {"summary_tokens": 40}, {"redact": False}]
    )
    async def test_records_of_other_settings_are_not_adopted(self, settings: dict[str, Any]) -> None:
        """They stand for other cuts."""
        store, rows, _ = await self.session()
        made = await fed(manager(rec := Recorder(), store=store, **settings), rows)
        await made.get_messages_for_request(1_500, scripted())
        assert rec.boundaries == 1

    async def test_a_text_that_is_gone_becomes_a_digest(self) -> None:
        """Without a call; it is made again at the next boundary."""
        store, rows, before = await self.session()
        records = KeptStore()
        await records.take(records=store.records)
        made, provider = await fed(manager(store=records), rows), scripted()
        view = await made.get_messages_for_request(1_500, provider)
        assert [row["metadata"] for row in nodes(view)] == [row["metadata"] for row in nodes(before)]
        assert digests(view) > 0
        assert provider.calls == 0

    async def test_elisions_are_adopted(self) -> None:
        """Shortened rows stay shortened: the prefix does not change."""
        store = MemoryStore()
        rows = [*tool_session(10), call("r"), result("r", "word " * 600), *tool_session(2, start=50)]
        settings: dict[str, Any] = {
            "elide_tool_results": 200, "keep_recent": 8, "store": store,
            "compact_threshold": 0.7, "target_usage": 0.5, "summary_share": 0.25,
        }  # fmt: skip
        first = await fed(manager(**settings), rows)
        before = await first.get_messages_for_request(2_300, scripted())
        assert "characters left out" in str(before)
        again = await fed(manager(**settings), saved(rows))
        assert await again.get_messages_for_request(2_300, scripted()) == before

    async def test_a_fork_shortens_only_rows_that_it_shares(self) -> None:
        """Another row in the same place is not the one that was cut."""
        store = MemoryStore()
        settings: dict[str, Any] = {
            "elide_tool_results": 200, "keep_recent": 8, "store": store,
            "compact_threshold": 0.7, "target_usage": 0.5, "summary_share": 0.25,
        }  # fmt: skip
        shared, end = tool_session(10), tool_session(2, start=50)
        first = await fed(manager(**settings), [*shared, call("r"), result("r", "word " * 600), *end])
        await first.get_messages_for_request(2_300, scripted())
        kept = {**result("r", "important " * 150), "critical": True}
        fork = await fed(manager(**settings), [*shared, call("r"), kept, *end])
        view = await fork.get_messages_for_request(LARGE, scripted())
        assert nodes(view)
        assert kept in view

    async def test_a_late_adoption_does_not_undo_a_boundary(self) -> None:
        """The frontier never moves back: with a store that takes its time."""
        store, rows, _ = await self.session()
        slow = SlowStore()
        await slow.take(summaries=store.summaries, records=store.records)
        made = await fed(manager(store=slow), [*rows, *tool_session(20, start=30)])
        counting = asyncio.create_task(made.get_token_count())
        await slow.entered.wait()
        await made.get_messages_for_request(1_500, scripted())
        frontier = made.conversation.view.frontier
        slow.go.set()
        await counting
        assert made.conversation.view.frontier == frontier

    async def test_a_history_that_is_replaced_while_it_is_looked_up_is_looked_up_itself(self) -> None:
        """A resumed session starts where it was."""
        store, rows, before = await self.session()
        slow = SlowStore()
        await slow.take(summaries=store.summaries, records=store.records)
        made, provider = await fed(manager(rec := Recorder(), store=slow), tool_session(2, start=90)), scripted()
        request = asyncio.create_task(made.get_messages_for_request(1_500, provider))
        await slow.entered.wait()
        await made.set_messages(rows)
        slow.go.set()
        assert nodes(await request) == nodes(before)
        assert rec.boundaries == 0


class TestTokenCount:
    async def test_it_is_the_size_of_the_view_as_it_would_be_served(self) -> None:
        """Without making a boundary."""
        made, provider = manager(rec := Recorder()), scripted()
        assert await made.get_token_count() == 0
        for row in tool_session(12):
            await made.add_message(row)
        tokens = await made.get_token_count()
        assert tokens == size(await made.get_messages_for_request(LARGE, provider))
        assert tokens > 900
        view = await made.get_messages_for_request(900, provider)
        assert await made.get_token_count() == size(view)
        assert rec.boundaries == 1

    async def test_an_empty_history_has_the_size_of_its_prompt(self) -> None:
        """Once a view has asked for it."""

        async def factory() -> str:
            return "You are kind."

        made = manager()
        await made.set_system_prompt_factory(factory)
        view = await made.get_messages_for_request(LARGE)
        assert await made.get_token_count() == size(view) > 0


class TestBudgetsOfHosts:
    """What a host passes as `token_budget`."""

    async def test_zero_is_no_budget(self) -> None:
        made = await fed(manager(), tool_session(2))
        provider = scripted()

        assert await made.get_messages_for_request(0, provider) == await made.get_messages_for_request(None, provider)

    @pytest.mark.parametrize(
        ("given", "error"), [(-1, ValueError), ("x", TypeError), (1e5, TypeError), (True, TypeError)]
    )
    async def test_what_is_no_budget_raises_and_changes_nothing(self, given: Any, error: type[Exception]) -> None:
        made = await fed(manager(), tool_session(2))

        with pytest.raises(error, match=f"token_budget must be .*, got {given!r}"):
            await made.get_messages_for_request(given)
        with pytest.raises(error, match="token_budget must be"):
            await made.request_retention(retain_contents=[], token_budget=given)
        assert await made.get_messages() == tool_session(2)
