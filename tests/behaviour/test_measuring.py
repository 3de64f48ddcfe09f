"""Measuring is right: against tiktoken, against a provider with another tokenizer, and when the window changes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import ROW_OVERHEAD, measure
from tests.support.managed import Managed
from tests.support.paths import ROOT
from tests.support.recorder import EXAMPLE
from tests.support.rows import assistant, user
from tests.support.views import size

COUNT = TokenCounter().count
RECORDINGS = [EXAMPLE, *sorted((ROOT / "tests" / "data").glob("*.jsonl"))]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_rows_are_measured_within_two_percent_of_the_exact_count_of_their_text(path):
    """The whole text of each row in one piece, calls with their JSON arguments, wrapping aside."""
    ours = told = 0
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        ours += measure(row, COUNT) - ROW_OVERHEAD
        told += COUNT(written(row))
    assert abs(ours - told) <= 0.02 * told


def written(row: dict[str, Any]) -> str:
    """A row as one text, written down here without the package's help."""
    content = row["content"]
    texts = [content] if isinstance(content, str) else [block["text"] for block in content if block["type"] == "text"]
    for call in row.get("tool_calls", ()):
        texts.append(call["tool"] + "\n" + json.dumps(call["arguments"], ensure_ascii=False, sort_keys=True))
    return "\n".join(texts)


def reported(estimate: int) -> int:
    """What a provider with another tokenizer and 9,000 tokens of tools reports."""
    return round(1.35 * estimate) + 9_000


async def heard(session: Managed, tokens: Any) -> None:
    """An `llm:response` with this figure."""
    data = {"provider": "main", "status": "ok", "usage": {"input_tokens": tokens, "output_tokens": 5}}
    await session.manager.observe_response("llm:response", data)


async def talk(session: Managed, words: int) -> None:
    await session.add([user("one two three four five six seven eight nine ten " * words), assistant("done")])


async def test_three_responses_make_the_next_estimate_right_also_after_a_compaction():
    """Within 5 % of what the provider would report: the next request, and the first one after a compaction."""
    session = Managed(provider=lambda: ScriptedProvider(context_window=60_000, max_output_tokens=1_000), keep_recent=4)
    for _ in range(3):
        await talk(session, 300)
        await heard(session, reported(size(await session.view())))
    await talk(session, 300)
    after = size(await session.view())
    assert await session.manager.get_token_count() == pytest.approx(reported(after), rel=0.05)
    while not session.host.compactions:
        await talk(session, 300)
        after = size(await session.view())
    assert after < 20_000
    assert await session.manager.get_token_count() == pytest.approx(reported(after), rel=0.05)
    made = session.host.of("context:compaction")[0]
    assert made["after_tokens"] == pytest.approx(reported(after), rel=0.05)
    assert made["before_tokens"] >= 0.7 * made["budget"]


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 19_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 18_000}},
        {"input_tokens": 19_000, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 18_000}},
        {"input_tokens": 500, "cache_read_input_tokens": 18_000, "cache_creation_input_tokens": 500},
    ],
    ids=["chat completions", "responses", "anthropic"],
)
@pytest.mark.parametrize("form", [dict, lambda usage: SimpleNamespace(**usage)], ids=["dictionary", "object"])
async def test_a_loop_without_hooks_reports_usage_as_its_sdk_has_it_cached_tokens_too(usage, form):
    session = Managed(max_tokens=60_000)
    await talk(session, 1_000)
    await session.view()
    await session.manager.observe_usage(form(usage))
    assert await session.manager.get_token_count() == pytest.approx(19_000, rel=0.01)


async def test_reminders_that_stand_beside_the_view_are_measured_with_it():
    """What a compaction has summarised, and the host wants whole, is sent as well."""
    session, reminder = Managed(max_tokens=12_000, keep_recent=2), "Remember the milk. " * 300
    await session.add([{**user(reminder), "metadata": {"ephemeral": True, "persisted": True}}])
    for _ in range(6):
        await talk(session, 150)
    rows = await session.manager.request_retention(retain_contents=[reminder])
    assert [row["content"] for row in rows[1:]].count(reminder) == 1
    sent = size(rows)
    await heard(session, sent)
    assert await session.manager.get_token_count() == pytest.approx(sent, rel=0.01)


@pytest.mark.parametrize("figure", [300, 900_000, -5, "12000", None, 2.5])
async def test_helpers_and_impossible_figures_change_nothing(figure):
    """Session naming is small, and a provider may report anything."""
    session = Managed(max_tokens=200_000)
    await talk(session, 1_000)
    await session.view()
    before = await session.manager.get_token_count()
    await heard(session, figure)
    assert await session.manager.get_token_count() == before


async def test_a_correction_changes_the_next_weighing_not_the_view_already_served():
    """Rule 4: what has been served is served again, until a row comes."""
    session = Managed(max_tokens=16_000, keep_recent=2, compact_threshold=0.7)
    for _ in range(10):
        await talk(session, 90)
    view = await session.view()
    await heard(session, 15_500)
    assert await session.view() == view
    assert session.host.compactions == 0
    assert len(await (await session.add([user("and now?")])).view()) < len(view)
    assert session.host.compactions == 1
