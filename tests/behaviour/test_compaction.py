"""Compactions: their events and what these tell, once each, and what happens when one is not made after all."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from amplifier_core.message_models import ChatRequest

from context_summarize import Config, SummarizingContextManager
from context_summarize.events import COMPACTION, POST_COMPACT, PRE_COMPACT
from context_summarize.messages.rows import JsonRow
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from tests.support.gated import answer
from tests.support.recorder import Recorder
from tests.support.rows import assistant, tool_session, user
from tests.support.views import nodes, size

SMALL: dict[str, Any] = {"segment_tokens": 64, "prefetch": False}
COUNT = TokenCounter().count


def wordy(request: ChatRequest) -> str:
    """Nearly as long as what it stands for, and just short enough for the gate."""
    return "".join(f" word {at}" for at in range(int(0.3 * COUNT(str(request.messages[1].content)))))


def manager(recorder: Recorder | None, **settings: Any) -> SummarizingContextManager:
    return SummarizingContextManager(recorder, config=Config.from_mapping({**SMALL, "keep_recent": 4, **settings}))


async def crossed(recorder: Recorder, budget: int = 900, says: Any = answer) -> list[JsonRow]:
    """The view after one compaction."""
    made = manager(recorder)
    await made.set_messages(tool_session(8))
    return await made.get_messages_for_request(budget, ScriptedProvider(then=says))


class TestEvents:
    async def test_the_payloads_tell_sizes_before_and_after_and_the_reason(self) -> None:
        """context:pre_compact, context:post_compact and context:compaction."""
        recorder = Recorder()
        view = await crossed(recorder)
        [pre], [post], [made] = (recorder.of(name) for name in (PRE_COMPACT, POST_COMPACT, COMPACTION))
        assert (pre["message_count"], pre["budget"], pre["reason"]) == (32, 900, "must_fit")
        assert pre["tokens"] == pre["token_count"] == size(tool_session(8)) > 900
        assert pre["usage"] == round(pre["tokens"] / 900, 4)
        assert post["message_count"] == len(view)
        assert post["tokens"] == post["token_count"] == size(view)
        assert post["tokens_saved"] == pre["tokens"] - size(view)
        assert post["segments"] > post["merged"] >= 0
        assert (post["from_cache"], post["fallbacks"], post["undo"]) == (0, 0, False)
        assert post["wait_ms"] >= 0
        assert (made["before_messages"], made["after_messages"]) == (32, len(view))
        assert (made["before_tokens"], made["after_tokens"]) == (pre["tokens"], size(view))
        assert (made["budget"], made["target_tokens"], made["strategy_level"]) == (900, 175, 1)

    async def test_values_that_the_new_view_holds_no_more_are_counted_and_three_are_named(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """After redaction, in the event and in the log."""
        caplog.set_level(logging.INFO)
        made = manager(recorder := Recorder(), keep_recent=2, recall_tool=True, notes_share=0.02)
        secret = "sk-ant-" + "a1B2" * 10
        rows = [user(f"Look up K-{7_000 + at} with {secret}. {'It says little. ' * 20}") for at in range(30)]
        await made.set_messages([row for one in rows for row in (one, assistant("Yes."))])
        view = str(await made.get_messages_for_request(3_000, ScriptedProvider(then=answer)))
        [post] = recorder.of(POST_COMPACT)
        gone = [f"K-{7_000 + at}" for at in range(30) if f"K-{7_000 + at}" not in view]
        assert len(gone) > 3
        assert post["values_lost"] == len(gone)
        assert len(post["values_lost_examples"]) == 3
        assert set(post["values_lost_examples"]) < set(gone)
        [line] = [line for line in caplog.messages if "exact values" in line]
        assert f"the view shows {post['values_kept']} and does not show {len(gone)}, such as K-" in line
        assert line.endswith("; recall finds them")
        assert secret not in str(recorder.events) + caplog.text
        await made.close()

    async def test_values_that_earlier_compactions_kept_are_counted_when_they_go(self) -> None:
        """Those of the notes and summaries before, whether or not the compaction summarises more rows of them."""
        made = manager(recorder := Recorder(), keep_recent=2, notes_share=0.05)
        provider, shown, lost = ScriptedProvider(then=answer), set[str](), list[int]()
        for value in (f"K-{number}" for number in range(7_000, 7_120)):
            await made.add_message(user(f"Look up {value}. {'It says little. ' * 20}"))
            before, view = {*shown, value}, str(await made.get_messages_for_request(3_000, provider))
            await made.add_message(assistant("Yes."))
            shown = {*re.findall(r"K-\d+", view)}
            lost += [len(before - shown)] if recorder.compactions > len(lost) else []
        assert sum(lost) > 100
        assert [post["values_lost"] for post in recorder.of(POST_COMPACT)] == lost
        await made.close()


class TestWithdrawn:
    async def test_summaries_that_turn_out_too_large_close_the_announcement(self) -> None:
        """A compaction that frees too little is not made: it saved nothing, and says so."""
        settings = {"segment_tokens": 256, "keep_recent": 4, "summary_share": 1.0, "shorten_tool_results": None}
        made = manager(recorder := Recorder(), **settings)
        await made.set_messages(tool_session(5, size=900))
        budget = int(await made.get_token_count() / 0.8)
        provider = ScriptedProvider(then=wordy)
        before = await made.get_messages_for_request(budget, provider)
        assert provider.calls > 0
        assert nodes(before) == []
        assert [name for name in recorder.names() if name.startswith("context:")] == [PRE_COMPACT, POST_COMPACT]
        [pre], [post] = recorder.of(PRE_COMPACT), recorder.of(POST_COMPACT)
        assert (post["tokens"], post["tokens_saved"]) == (pre["tokens"], 0)
        assert (post["segments"], post["merged"], post["fallbacks"]) == (0, 0, 0)
        assert post["message_count"] == pre["message_count"]
        calls = provider.calls
        assert await made.get_messages_for_request(budget, provider) == before
        assert (provider.calls, len(recorder.of(PRE_COMPACT))) == (calls, 1)


async def test_summaries_and_notes_are_user_rows_where_that_is_set() -> None:
    """All else is as it is with system rows."""
    views = []
    for role in ("system", "user"):
        made = manager(None, summary_role=role, segment_tokens=512, max_tokens=16_000)
        await made.set_messages(tool_session(60))
        views.append(await made.get_messages_for_request(6_000, ScriptedProvider(then=answer)))
        own = [row for row in views[-1] if (row.get("metadata") or {}).get("source") == "context-summarize"]
        assert len(own) > 1
        assert {row["role"] for row in own} == {role}
    as_system, as_user = ([{**row, "role": ""} for row in view] for view in views)
    assert as_system == as_user
