"""The manager: the host's methods, the system prompt, sizes, providers, when it compacts, floors, adoption."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from amplifier_core.llm_errors import NotFoundError
from amplifier_core.message_models import ChatRequest

from context_summarize import Config, SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.notes.fallback import FALLBACK_LINE
from context_summarize.stores.memory import MemoryStore
from context_summarize.testing import ScriptedProvider, call, hook, result, tool_session, user
from tests.support.gated import answer
from tests.support.kept import KeptStore
from tests.support.recorder import Recorder
from tests.support.views import nodes, size

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False}
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


def fallbacks(view: list[JsonRow]) -> int:
    return sum(1 for row in nodes(view) if FALLBACK_LINE in row["content"])


class TestContract:
    async def test_a_wrong_row_of_many_is_named(self) -> None:
        """By its place."""
        with pytest.raises(ValueError, match="message 2: unknown role"):
            await manager().set_messages([user("a"), user("b"), {"role": "x"}])

    async def test_it_works_without_a_host_and_without_a_provider(self) -> None:
        """Settings as keywords; fallbacks stand in."""
        made = SummarizingContextManager(max_tokens=1_000, keep_recent=4, **SMALL)
        await fed(made, tool_session(12))
        view = await made.get_messages_for_request()
        assert size(view) <= 1_000
        assert fallbacks(view) == len(nodes(view)) > 0

    async def test_config_and_settings_together_are_refused(self) -> None:
        """One of them would be ignored."""
        with pytest.raises(TypeError, match="not both"):
            SummarizingContextManager(config=Config(), keep_recent=3)


class TestSetMessages:
    async def test_a_transcript_without_hook_rows_is_still_the_same_conversation(self) -> None:
        """Filtered by the host: the record of the last compaction is found, no call, no event."""
        rows = [row for made_row in tool_session(12) for row in (made_row, hook("note"))]
        made, provider = manager(rec := Recorder()), scripted()
        await fed(made, rows)
        before = await made.get_messages_for_request(900, provider)
        calls, compactions = provider.calls, rec.compactions
        await made.set_messages(tool_session(12))
        after = await made.get_messages_for_request(900, provider)
        assert nodes(after) == nodes(before)
        assert (provider.calls, rec.compactions) == (calls, compactions)


class TestClear:
    async def test_keys_that_were_given_up_are_asked_for_again(self) -> None:
        """Refused three times: a fallback until clear()."""
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
        assert set(await asked(6, 350)) & set(first), (
            "the compaction that was adopted does not fit, and yet nobody is asked"
        )


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
            await fed(made, tool_session(60, size=4_000))
            await made.get_messages_for_request(budget)
            assert made.conversation.builder.segment_sizes == sizes

    async def test_a_session_resumed_with_a_smaller_window_gets_shorter_segments(self) -> None:
        """Derived anew when a segment exceeds a quarter of a later budget: also of the first one after a restart."""
        store, settings = MemoryStore(), {"segment_tokens": None}
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
    async def test_a_fallback_provider_is_not_asked_for_the_model_of_another(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It does not know the name, and would refuse every summary; the log says both."""
        main = ScriptedProvider(then=_refusing_other_models, context_window=6_000, max_output_tokens=500)
        recorder = Recorder({"main": main})
        made = manager(recorder, summary_provider="smal", summary_model="tiny-1")
        await fed(made, tool_session(12))
        await made.get_messages_for_request(900)
        assert main.calls > 0
        assert {request.model for request in main.requests} == {None}
        assert recorder.of("context-summarize:failure") == []
        [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "'smal' is not mounted (mounted: main); the session's own provider writes" in record.getMessage()
        assert "without summary_model 'tiny-1'" in record.getMessage()


class TestWhen:
    async def test_nothing_happens_below_the_threshold(self) -> None:
        """Usage of seven tenths makes a compaction, less does not, where that is what is set."""
        made, provider = await fed(manager(compact_threshold=0.7), tool_session(30)), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(int(tokens / 0.69), provider)) == []
        assert provider.calls == 0
        view = await made.get_messages_for_request(int(tokens / 0.71), provider)
        assert nodes(view)
        assert size(view) <= 0.3 * tokens / 0.71 + 100

    async def test_auto_compact_false_makes_compactions_only_to_fit(self) -> None:
        """And on compact()."""
        made, provider = await fed(manager(auto_compact=False), tool_session(12)), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(tokens, provider)) == []
        assert nodes(await made.get_messages_for_request(tokens - 1, provider))

    async def test_no_compaction_that_frees_little(self) -> None:
        """The prompt cache is not thrown away for little, unless the view does not fit."""
        rows = [{"role": "system", "content": "rule " * 3_000}, *tool_session(2, size=100)]
        made, provider = await fed(manager(rec := Recorder()), rows), scripted()
        tokens = await made.get_token_count()
        assert nodes(await made.get_messages_for_request(int(tokens / 0.8), provider)) == []
        assert (rec.compactions, provider.calls) == (0, 0)
        view = await made.get_messages_for_request(tokens - 1, provider)
        assert size(view) < tokens
        assert rec.compactions == 1

    async def test_a_window_that_grows_again_shows_summaries_again(self) -> None:
        """One-line nodes are for what does not fit otherwise; the text is in the store."""
        made, provider = await fed(manager(keep_recent=0, summary_share=1.0), tool_session(3)), scripted()
        assert "no room for a summary" in str(await made.get_messages_for_request(110, provider))
        await fed(made, tool_session(18, start=3))
        assert "no room for a summary" not in str(await made.get_messages_for_request(2_500, provider))


class TestCompact:
    async def test_it_folds_down_to_keep_recent_and_says_what_it_saved(self) -> None:
        """Whatever it frees, and below the threshold; the newest part as a segment that ends early."""
        made = await fed(manager(segment_tokens=512), tool_session(12))
        provider = scripted()
        await made.get_messages_for_request(LARGE, provider)
        before = await made.get_token_count()
        saved = await made.compact()
        after = await made.get_token_count()
        assert saved == before - after > 0
        view = await made.get_messages_for_request(LARGE, provider)
        assert size(view) == after
        assert made.conversation.builder.first_group == made.conversation.view.frontier
        assert nodes(view)[-1]["metadata"]["messages"][1] == 44
        assert [row["content"] for row in view[-3:]] == [row["content"] for row in tool_session(12)[-3:]]

    async def test_focus_reaches_only_the_user_row_of_the_rest(self) -> None:
        """Never the instructions, and no other summary."""
        made, provider = await fed(manager(segment_tokens=512), tool_session(14)), scripted()
        await made.get_messages_for_request(LARGE, provider)
        await made.compact("the SHIPPING dates")
        told = [request for request in provider.requests if "SHIPPING" in str(request.messages)]
        assert len(provider.requests) > 1
        [request] = told
        assert "SHIPPING" not in str(request.messages[0].content)
        assert "SHIPPING" in str(request.messages[1].content)

    async def test_again_it_saves_nothing_and_asks_nobody(self) -> None:
        """There is nothing left to fold."""
        made, provider = await fed(manager(rec := Recorder()), tool_session(12)), scripted()
        await made.get_messages_for_request(LARGE, provider)
        await made.compact()
        calls, compactions = provider.calls, rec.compactions
        assert await made.compact("something else") == 0
        assert (provider.calls, rec.compactions) == (calls, compactions)

    @pytest.mark.parametrize("rows", [[], [user("hi")], tool_session(1)])
    async def test_where_there_is_little_it_saves_nothing(self, rows: list[JsonRow]) -> None:
        """All of it is recent."""
        made = await fed(manager(), rows)
        assert await made.compact() == 0
        assert await made.get_messages_for_request(LARGE) == rows


class SlowStore(KeptStore):
    """Holds the first look for a record until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def get_records(self, hashes: Sequence[str]) -> dict[str, JsonRow]:
        found = await super().get_records(hashes)
        if not self.entered.is_set():
            self.entered.set()
            await self.go.wait()
        return found


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
        made, provider = await fed(manager(store=records, summary_share=1.0), rows), scripted()
        view = await made.get_messages_for_request(3_000, provider)
        assert [row["metadata"] for row in nodes(view)] == [row["metadata"] for row in nodes(before)]
        assert fallbacks(view) > 0
        assert provider.calls == 0

    async def test_elisions_are_adopted(self) -> None:
        """Shortened rows stay shortened: the prefix does not change."""
        store = MemoryStore()
        rows = [*tool_session(10), call("r"), result("r", "word " * 8_000), *tool_session(2, start=50)]
        settings: dict[str, Any] = {
            "shorten_tool_results": 200, "keep_recent": 8, "store": store,
            "compact_threshold": 1.0, "summary_share": 0.25,
        }  # fmt: skip
        first = await fed(manager(**settings), rows)
        before = await first.get_messages_for_request(7_500, scripted())
        assert "characters left out" in str(before)
        again = await fed(manager(**settings), rows)
        assert await again.get_messages_for_request(7_500, scripted()) == before

    async def test_a_late_adoption_does_not_undo_a_compaction(self) -> None:
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


class TestTokenCount:
    async def test_it_is_the_size_of_the_view_as_it_would_be_served(self) -> None:
        """Without making a compaction."""
        made, provider = manager(rec := Recorder()), scripted()
        assert await made.get_token_count() == 0
        for row in tool_session(12):
            await made.add_message(row)
        tokens = await made.get_token_count()
        assert tokens == size(await made.get_messages_for_request(LARGE, provider))
        assert tokens > 900
        view = await made.get_messages_for_request(900, provider)
        assert await made.get_token_count() == size(view)
        assert rec.compactions == 1


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
