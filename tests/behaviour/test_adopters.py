"""What somebody meets who takes the module into a program of their own: errors in words, and no file without need."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from context_summarize import ConfigError, SummarizingContextManager
from context_summarize.recall import RecallQuery
from context_summarize.stores import open_store
from context_summarize.testing import FALLBACK_LINE, ScriptedProvider
from tests.support.recorder import Recorder, Screen
from tests.support.rows import feed, tool_session, user
from tests.support.views import nodes


def test_a_second_event_loop_is_refused_at_its_first_call() -> None:
    """Whatever it asks for; the first one can go on."""
    made = SummarizingContextManager()
    calls: list[Any] = [
        lambda: made.add_message(user("b")),
        made.get_messages,
        made.get_messages_for_request,
        lambda: made.set_messages([user("b")]),
        made.clear,
        made.get_token_count,
        made.compact,
        made.undo,
        made.statistics,
    ]
    with asyncio.Runner() as runner:
        runner.run(made.add_message(user("a")))
        for call in calls:
            with asyncio.Runner() as another, pytest.raises(RuntimeError, match=r"another event loop.*asyncio\.run"):
                another.run(call())
        assert [row["content"] for row in runner.run(made.get_messages())] == ["a"]


@pytest.mark.parametrize(
    ("given", "settings", "says"),
    [
        ({"keep_recent": 5}, {}, "coordinator must be a session's, got dict; settings are keywords"),
        (None, {"config": {}, "keep_recent": 5}, "pass either config or settings, not both"),
        (None, {"config": ["keep_recent"]}, "config must be a mapping of settings, got list"),
    ],
)
def test_settings_that_are_given_in_another_way_are_refused(given: Any, settings: Any, says: str) -> None:
    with pytest.raises((TypeError, ConfigError), match=says):
        SummarizingContextManager(given, **settings)


@pytest.mark.parametrize("provider", [object(), "openai", SimpleNamespace(complete="text")])
async def test_a_provider_that_cannot_complete_is_refused_at_the_first_request(provider: Any) -> None:
    """The error names what can."""
    made = SummarizingContextManager()
    await made.add_message(user("a"))
    for ask in (made.get_messages_for_request, partial(made.request_retention, retain_contents=[])):
        with pytest.raises(TypeError, match=r"complete\(\).*provider_of.*make_provider"):
            await ask(provider=provider)
    assert len(await made.get_messages_for_request(provider=ScriptedProvider())) == 1


def screen() -> Screen:
    """A host with a provider and a screen."""
    return Screen(providers={"main": ScriptedProvider(name="main")})


@pytest.mark.parametrize("host", [None, screen()])
async def test_the_summary_provider_offline_is_code_without_any_call(
    host: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """With a host or without one: nobody is asked, and nothing is told as an error."""
    provider = ScriptedProvider(name="main")
    made = SummarizingContextManager(host, summary_provider="offline", keep_recent=4)
    await made.prepare()
    await feed(made, tool_session(60, size=600))
    shown = nodes(await made.get_messages_for_request(4_000, provider))
    await made.close()
    assert shown
    assert all(FALLBACK_LINE in row["content"] for row in shown)
    assert (provider.calls, (await made.statistics()).calls) == (0, 0)
    assert caplog.records == []
    if host is not None:
        started, finished = "context:compaction_started", "context:compaction_finished"
        assert host.names() == ["context:pre_compact", started, "context:post_compact", finished, "context:compaction"]
        assert [line for _, line in host.lines if not line.startswith("context: ")] == []
        assert "did not write" not in str(host.lines)


ASKED: dict[str, Any] = {
    "recall": lambda made: made.recall(RecallQuery(messages="1-2")),
    "status": lambda made: made.statistics(),
    "preview": lambda made: made.preview(),
    "unpin": lambda made: made.unpin(),
    "clear": lambda made: made.clear(),
    "set": lambda made: made.set_messages(tool_session(2)),
    "size": lambda made: made.get_token_count(),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_a_short_session_leaves_no_file_whatever_it_is_asked(tmp_path: Any, asked: str) -> None:
    file = tmp_path / "summaries.db"
    made = SummarizingContextManager(Recorder(session_id="s"), store=open_store(str(file)))
    await feed(made, tool_session(3))
    await made.get_messages_for_request(provider=ScriptedProvider())
    await ASKED[asked](made)
    await made.finish()
    await made.close()
    assert not file.exists()
