"""What a replay reads and tells."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amplifier_core.llm_errors import AuthenticationError

from context_summarize import Config, SummarizingContextManager, TemplateError
from context_summarize.errors import SessionFileError
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.player import Setup, changed_settings, replay
from context_summarize.replay.session_files import read_session
from context_summarize.testing import ScriptedProvider, assistant, call, tool_session, user
from context_summarize.tokens.counter import TokenCounter

LATE: dict[str, Any] = {"compact_threshold": 0.7, "target_usage": 0.3, "prefetch_threshold": 0.5}
"""Compactions that are so rare that the last one has summaries of its own."""


def write(path: Path, *lines: str | bytes) -> Path:
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return path


def scripted(**options) -> ScriptedProvider:
    return ScriptedProvider(context_window=8_000, max_output_tokens=1_000, **options)


# --- the file -------------------------------------------------------------------------------------------------------


def test_messages_are_read_a_line_each_and_blank_lines_byte_order_mark_and_crlf_do_not_matter(tmp_path):
    rows = [user("hé"), assistant("line\u2028separator")]
    texts = [json.dumps(row, ensure_ascii=False) for row in rows]
    path = write(tmp_path / "a.jsonl", "\ufeff" + texts[0] + "\r", "", "  \t", texts[1], "")

    assert read_session(path) == rows


GOOD = json.dumps(user("x"))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "a.jsonl holds no messages"),
        (["", "  "], "a.jsonl holds no messages"),
        ([GOOD, "", "{role"], "a.jsonl, line 3 is not JSON: Expecting property name"),
        ([GOOD, b"\xff\xfe"], r"a.jsonl, line 2 is not UTF-8 \(byte 1\)"),
        ([GOOD, "[1]"], "a.jsonl, line 2 is not a message: a message must be a dict, got list"),
        (['{"role": "User"}'], "a.jsonl, line 1 is not a message: unknown role 'User'.*did you mean 'user'"),
        ([GOOD, '{"role": "tool", "content": "x"}'], "line 2 is not a message: a tool message needs the id"),
        (["[" * 100_000], "a.jsonl, line 1 is not JSON that can be read"),
        (["1" * 5_000], "a.jsonl, line 1 is not JSON that can be read"),
    ],
)
def test_a_file_that_holds_no_session_is_refused_with_the_line(tmp_path, lines, says):
    with pytest.raises(SessionFileError, match=says):
        read_session(write(tmp_path / "a.jsonl", *lines))


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path):
    with pytest.raises(SessionFileError, match="cannot be read: No such file"):
        read_session(tmp_path / "none.jsonl")
    with pytest.raises(SessionFileError, match="is a directory"):
        read_session(tmp_path)


# --- the replay -----------------------------------------------------------------------------------------------------


async def test_a_session_that_fits_is_sent_whole_and_costs_no_call():
    rows = tool_session(3)
    provider = scripted()

    told = await replay(rows, Setup(provider=provider, name="scripted"))

    assert (told.messages, told.requests, told.boundaries, told.provider_calls) == (12, 6, [], 0)
    assert (told.window, told.budget) == (8_000, 6_000)
    assert told.last_view == rows[:-1]
    assert told.stable_share == 1.0
    assert told.largest_view < told.history_tokens
    assert told.failed is None


async def test_a_session_that_does_not_fit_is_told_compaction_by_compaction():
    rows = tool_session(60, size=800)
    provider = scripted()
    seen = []

    told = await replay(rows, Setup(provider=provider, name="scripted"), progress=lambda *now: seen.append(now))

    assert told.failed is None
    assert len(told.boundaries) >= 3
    assert all(line.before_tokens > line.after_tokens > 0 for line in told.boundaries)
    assert all(rows[line.row - 1]["role"] == "assistant" for line in told.boundaries)
    assert [line.row for line in told.boundaries] == sorted({line.row for line in told.boundaries})
    assert {line.reason for line in told.boundaries} == {"threshold"}
    assert sum(line.segments for line in told.boundaries) >= 3
    assert told.provider_calls == provider.calls > 0
    assert told.failed_calls == 0
    assert told.provider_input_tokens > told.provider_output_tokens > 0
    assert 0.5 < told.stable_share < 1.0
    assert told.largest_view <= told.budget < told.history_tokens
    assert seen[-1] == (len(rows), len(told.boundaries))
    assert [done for done, _ in seen] == list(range(1, len(rows) + 1))


async def test_every_request_is_told_with_its_size():
    rows = tool_session(60, size=800)

    told = await replay(rows, Setup(provider=scripted(), name="scripted"))

    assert [rows[line.row - 1]["role"] for line in told.request_lines] == ["assistant"] * told.requests
    assert max(line.tokens for line in told.request_lines) == told.largest_view
    assert (told.request_lines[-1].tokens, told.request_lines[-1].rows) == (sum(told.last_sizes), len(told.last_view))
    after = {line.row: line.tokens for line in told.request_lines}
    assert all(after[line.row] == line.after_tokens for line in told.boundaries)


async def test_what_was_replayed_and_how_is_told():
    config = Config(keep_recent=3, compact_threshold=0.6, target_usage=0.25, redact=("x+",))

    told = await replay(tool_session(3), Setup(provider=scripted(), name="scripted", source="a.jsonl", config=config))

    assert (told.source, told.threshold_tokens, told.target_tokens) == ("a.jsonl", 3_600, 1_500)
    assert told.redact == ("x+",)
    assert told.settings == {"keep_recent": 3, "compact_threshold": 0.6, "target_usage": 0.25, "redact": ("x+",)}
    told = await replay(tool_session(1), Setup(provider=scripted(), name="x", config=Config(auto_compact=False)))
    assert (told.source, told.threshold_tokens) == ("", None)


def test_settings_that_may_hold_a_password_are_named_without_their_value():
    config = Config(cache="redis://:secret@host/0", persistence={"path": "/home/me/history"}, fan_in=4)

    assert changed_settings(config) == {"cache": "…", "persistence": "…", "fan_in": 4}
    assert changed_settings(Config(cache="memory")) == {"cache": "memory"}
    assert changed_settings(Config()) == {}


async def test_the_checks_say_what_they_looked_at():
    told = await replay(tool_session(3), Setup(provider=scripted(), name="scripted"))

    assert [(check.name, check.checked, check.unit) for check in told.checks] == [
        ("History intact", 12, "rows"),
        ("Pairs intact", 6, "views"),
        ("User first", 6, "views"),
        ("Valid rows", 1 + 3 + 5 + 7 + 9 + 11, "rows"),
        ("Within budget", 6, "views"),
    ]


async def test_a_token_budget_takes_the_place_of_the_window():
    told = await replay(tool_session(3), Setup(provider=scripted(), name="scripted", token_budget=5_000))

    assert (told.window, told.budget) == (None, 5_000)


async def test_the_settings_reach_the_manager():
    rows = tool_session(60, size=800)

    truncating = Config(**LATE, compaction_strategy="truncate")
    told = await replay(rows, Setup(provider=scripted(), name="x", config=truncating))

    assert told.provider_calls == 0
    assert told.boundaries[-1].digests > 0
    with pytest.raises(TemplateError):
        await replay(rows, Setup(provider=scripted(), name="x", config=Config(prompts="no-such-set")))


async def test_a_summary_provider_is_found_under_its_name_and_another_name_is_told(caplog):
    await replay(
        tool_session(1), Setup(provider=scripted(), name="scripted", config=Config(summary_provider="scripted"))
    )
    assert caplog.messages == []

    await replay(tool_session(1), Setup(provider=scripted(), name="scripted", config=Config(summary_provider="other")))
    assert "'other' is not mounted (mounted: scripted)" in caplog.text


async def test_a_broken_provider_does_not_end_the_session():
    provider = scripted(then=AuthenticationError("no key"))

    told = await replay(tool_session(60, size=800), Setup(provider=provider, name="scripted", config=Config(**LATE)))

    assert told.failed is None
    assert told.failed_calls == told.provider_calls == provider.calls > 0
    assert told.boundaries[-1].digests > 0


async def test_a_view_that_cannot_fit_fails_its_check():
    rows = [{"role": "system", "content": "rule " * 900}, user("a"), assistant("b")]

    told = await replay(rows, Setup(provider=scripted(), name="x", token_budget=500))

    assert told.failed is told.checks[4]
    assert told.failed.first is not None
    assert told.failed.first.startswith("the request before message 2 holds ")


async def test_the_rows_given_are_not_changed_and_a_session_without_requests_is_told():
    rows = [user("a"), user("b")]

    told = await replay(rows, Setup(provider=scripted(), name="x"))

    assert rows == [user("a"), user("b")]
    assert (told.requests, told.stable_share, told.last_view, told.failed) == (0, 1.0, [], None)


async def test_a_call_that_stays_open_at_the_end_is_no_problem():
    rows = [user("a"), call("1"), assistant("passed over"), call("2")]

    told = await replay(rows, Setup(provider=scripted(), name="x"))

    assert told.failed is None


async def test_the_same_session_gives_the_same_replay():
    """A replay waits for prefetched summaries, however busy the machine is."""
    rows = tool_session(80, size=800)

    async def told():
        provider = OfflineProvider(TokenCounter().count, context_window=12_000, max_output_tokens=1_000)
        result = await replay(rows, Setup(provider=provider, name="offline"))
        return result.boundaries, result.provider_calls, result.provider_input_tokens, result.largest_view

    first = await told()
    assert first[0]
    assert [replace(line, wait_ms=0) for line in first[0]] == [replace(line, wait_ms=0) for line in (await told())[0]]
    assert first[1:] == (await told())[1:]


async def test_answers_that_are_no_summaries_count_as_such():
    """Nothing was raised, and still no summary came of it."""
    provider = ScriptedProvider(then="", context_window=12_000, max_output_tokens=1_000)

    told = await replay(tool_session(80, size=800), Setup(provider=provider, name="scripted"))

    assert told.provider_calls > 0
    assert (told.failed_calls, told.failed is None) == (0, True)
    assert told.failed_summaries > 0


def test_the_header_of_a_history_on_disk_is_no_message(tmp_path):
    """A file of `persistence` can be replayed and inspected as it is."""
    path = tmp_path / "history.jsonl"
    rows = tool_session(3)

    async def kept():
        manager = SummarizingContextManager(persistence={"path": str(path)})
        await manager.set_messages(rows)
        await manager.close()

    asyncio.run(kept())
    assert read_session(path) == rows
