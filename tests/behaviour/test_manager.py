"""The manager: the host's methods, the system prompt, sizes, providers, when it compacts, floors, adoption."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from amplifier_core.llm_errors import NotFoundError
from amplifier_core.message_models import ChatRequest

from context_summarize import Config, SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.testing import ScriptedProvider
from tests.support.gated import answer
from tests.support.kept import KeptStore
from tests.support.recorder import Recorder
from tests.support.rows import feed, hook, tool_session, user
from tests.support.views import nodes, size, untimed

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False}
LARGE = 10**6


def scripted(**changes: Any) -> ScriptedProvider:
    return ScriptedProvider(**{"then": answer, **changes})


def manager(recorder: Recorder | None = None, **settings: Any) -> SummarizingContextManager:
    seams = {name: settings.pop(name) for name in ("store", "clock", "sleep") if name in settings}
    config = Config.from_mapping({**SMALL, "keep_recent": 4, **settings})
    return SummarizingContextManager(recorder, config=config, **seams)


def fallbacks(view: list[JsonRow]) -> int:
    return sum(1 for row in nodes(view) if FALLBACK_LINE in row["content"])


class TestContract:
    async def test_config_and_settings_together_are_refused(self) -> None:
        """One of them would be ignored."""
        with pytest.raises(TypeError, match="not both"):
            SummarizingContextManager(config=Config(), keep_recent=3)


class TestSystemPrompt:
    async def test_the_factory_is_called_once_a_view(self) -> None:
        """Its prompt comes first, and stored system rows are hidden, hook rows aside."""
        made = await feed(manager(), [{"role": "system", "content": "stored"}, hook("note"), user("hi")])
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

    async def test_a_factory_that_raises_costs_no_request(self, caplog: pytest.LogCaptureFixture) -> None:
        """Stored rows stand until it has answered once; then its last prompt does."""
        answers: list[Any] = [RuntimeError("no"), "PROMPT", asyncio.CancelledError("an inner task has ended"), None]

        async def factory() -> Any:
            answer = answers.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        made = await feed(manager(), [{"role": "system", "content": "stored"}, user("hi")])
        await made.set_system_prompt_factory(factory)
        seen = [[row["content"] for row in await made.get_messages_for_request(LARGE)] for _ in range(4)]
        assert seen == [["stored", "hi"], ["PROMPT", "hi"], ["PROMPT", "hi"], ["stored", "hi"]]
        assert sum("system prompt factory failed" in record.message for record in caplog.records) == 2


class TestBudget:
    async def test_segments_are_derived_from_the_first_budget_that_is_nearly_full_and_fixed(self) -> None:
        """A power of two near an eighth of it; anew only when that exceeds a quarter of a later budget."""
        made = manager(segment_tokens=None)
        for budget, sizes in (
            (40_000, (4_096, 256)),
            (100_000, (4_096, 256)),
            (17_000, (4_096, 256)),
            (16_000, (2_048, 128)),
            (100_000, (2_048, 128)),
            (1_000, (512, 64)),
            (100, (512, 64)),
        ):
            await feed(made, tool_session(40, size=4_000))
            await made.get_messages_for_request(budget)
            assert made.conversation.segments is not None
            assert made.conversation.segments.cutting.sizes == sizes


def _refusing_other_models(request: ChatRequest) -> str:
    if request.model is not None:
        raise NotFoundError(f"no model {request.model}")
    return answer(request)


class TestProviders:
    async def test_a_fallback_provider_is_not_asked_for_the_model_of_another(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It does not know the name, and would refuse every summary; the log says both."""
        main = ScriptedProvider(then=_refusing_other_models, context_window=6_000, max_output_tokens=500)
        recorder = Recorder({"main": main})
        made = manager(recorder, summary_provider="smal", summary_model="tiny-1")
        await feed(made, tool_session(12))
        await made.get_messages_for_request(900)
        assert main.calls > 0
        assert {request.model for request in main.requests} == {None}
        assert recorder.of("context-summarize:failure") == []
        [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "'smal' is not mounted (mounted: main); the session's own provider writes" in record.getMessage()
        assert "without summary_model 'tiny-1'" in record.getMessage()


class TestWhen:
    async def test_auto_compact_false_makes_compactions_only_to_fit(self) -> None:
        """And on compact()."""
        made, provider = await feed(manager(auto_compact=False), tool_session(12)), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(tokens, provider)) == []
        assert nodes(await made.get_messages_for_request(tokens - 1, provider))

    async def test_a_window_that_grows_again_shows_summaries_again(self) -> None:
        """One-line nodes are for what does not fit otherwise; the text is in the store."""
        made, provider = await feed(manager(keep_recent=0, summary_share=1.0), tool_session(3)), scripted()
        assert "no room for a summary" in str(await made.get_messages_for_request(110, provider))
        await feed(made, tool_session(18, start=3))
        assert "no room for a summary" not in str(await made.get_messages_for_request(2_500, provider))


class TestCompact:
    async def test_it_folds_down_to_keep_recent_and_says_what_it_saved(self) -> None:
        """Whatever it frees, and below the threshold; the newest part as a segment that ends early."""
        made = await feed(manager(segment_tokens=512), tool_session(12))
        provider = scripted()
        await made.get_messages_for_request(LARGE, provider)
        before = await made.get_token_count()
        saved = await made.compact()
        after = await made.get_token_count()
        assert saved == before - after > 0
        view = await made.get_messages_for_request(LARGE, provider)
        assert size(view) == after
        assert made.conversation.segments is not None
        assert made.conversation.segments.first_group == made.conversation.view.frontier
        assert nodes(view)[-1]["metadata"]["messages"][1] == 44
        assert [row["content"] for row in view[-3:]] == [row["content"] for row in tool_session(12)[-3:]]


class TestAdoption:
    async def session(self) -> tuple[KeptStore, list[JsonRow], list[JsonRow]]:
        """(store, history, view) of a session with compactions."""
        store, rows, view = KeptStore(), tool_session(30), list[JsonRow]()
        made = manager(store=store, summary_share=1.0)
        for row in rows:
            await made.add_message(row)
            view = await made.get_messages_for_request(1_500, scripted())
        assert nodes(view)
        return store, rows, view

    async def test_a_text_that_is_gone_becomes_a_fallback(self) -> None:
        """Without a call; it is made again at the next compaction."""
        store, rows, before = await self.session()
        records = KeptStore()
        await records.take(records=store.records)
        made, provider = await feed(manager(store=records, summary_share=1.0), rows), scripted()
        view = await made.get_messages_for_request(3_000, provider)
        assert [row["metadata"] for row in nodes(view)] == [row["metadata"] for row in nodes(before)]
        assert fallbacks(view) > 0
        assert provider.calls == 0


class TestBudgetsOfHosts:
    """What a host passes as `token_budget`."""

    @pytest.mark.parametrize(
        ("given", "error"), [(-1, ValueError), ("x", TypeError), (1e5, TypeError), (True, TypeError)]
    )
    async def test_what_is_no_budget_raises_and_changes_nothing(self, given: Any, error: type[Exception]) -> None:
        made = await feed(manager(), tool_session(2))

        with pytest.raises(error, match=f"token_budget must be .*, got {given!r}"):
            await made.get_messages_for_request(given)
        with pytest.raises(error, match="token_budget must be"):
            await made.request_retention(retain_contents=[], token_budget=given)
        assert untimed(await made.get_messages()) == tool_session(2)


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("request_retention", {"retain_contents": 5}, "must be a list of the reminders' texts, got 5"),
        ("request_retention", {"retain_contents": "abc"}, "must be a list of the reminders' texts, got 'abc'"),
        ("set_system_prompt_factory", {"factory": 5}, "factory must be an async function .*; got 5"),
        ("recall", {"query": "1-3"}, "query must be a RecallQuery.*; got '1-3'"),
        ("recall", {"query": {"words": "x"}}, r"query must be a RecallQuery.*; got \{'words': 'x'\}"),
    ],
)
async def test_an_argument_of_a_wrong_type_is_told_with_what_was_expected(
    method: str, given: dict[str, Any], says: str
) -> None:
    """Nothing has changed: the next request is served as before."""
    made = await feed(manager(), tool_session(2))

    with pytest.raises(TypeError, match=says):
        await getattr(made, method)(**given)
    assert untimed(await made.get_messages_for_request(9_000)) == tool_session(2)
