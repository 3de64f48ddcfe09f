"""Sessions that reports are made of: with compactions, with hostile text, very long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_summarize import Config
from context_summarize.core.nodes import Summary
from context_summarize.facts.fact import Fact
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.player import Setup, replay
from context_summarize.replay.result import CompactionLine, ReplayResult, RequestLine
from context_summarize.replay.session_files import read_session
from context_summarize.replay.views import ShownRow, ViewChange, Views
from context_summarize.session.snapshot import Snapshot, SummaryNode
from context_summarize.testing import ScriptedProvider, assistant, call, result, user
from context_summarize.tokens.counter import TokenCounter
from context_summarize.transcript.rows import RenderedRow
from tests.support.cli import EXAMPLE

HOSTILE = (
    "</script><script>window.hacked = 1</script><!--<script> --> <img src=x onerror='window.hacked = 1'>"
    "<a href='javascript:window.hacked=1'>x</a> ]]> &lt;b&gt; \" ' ` ${window.hacked = 1} \u2028 \u202e \ud800 \x00"
)


def session(turns: int, text: str = "", size: int = 200) -> list[JsonRow]:
    rows = [user(f"Begin. {text}")]
    for turn in range(turns):
        rows += [
            call(f"c{turn}", f"read{text}", text=f"I look at it. {text}", path=f"src/file_{turn}.py{text}"),
            result(f"c{turn}", f"{text} value-{turn:04d} " * (size // (12 + len(text)) + 1), f"read{text}"),
            assistant(f"Done with {turn}. {text}"),
            user(f"Always go on to {turn + 1}. {text}"),
        ]
    return [*rows, assistant("The end.")]


def replayed(rows: list[JsonRow], answer: str = "Goal: it was done.", **options: Any) -> ReplayResult:
    provider = ScriptedProvider(context_window=8_000, max_output_tokens=1_000, then=answer)
    name, source = options.pop("name", "scripted"), options.pop("source", "session.jsonl")
    settings = {"compact_threshold": 0.7, "target_usage": 0.3, "fan_in": 2, "summary_share": 0.12} | options
    return asyncio.run(
        replay(rows, Setup(provider=provider, name=name, source=source, config=Config.from_mapping(settings)))
    )


@pytest.fixture(scope="module")
def plain() -> ReplayResult:
    """A session with compactions and merged summaries."""
    return replayed(session(90, size=600))


@pytest.fixture(scope="module")
def hostile() -> ReplayResult:
    """The same with markup in every place that a recorded session, a provider or a file name can fill."""
    rows = session(40, HOSTILE)
    # A pattern of the user's own is shown among the settings.
    return replayed(rows, f"Goal: {HOSTILE}", name=f"scripted {HOSTILE}", source=HOSTILE, redact=[HOSTILE[:9] + "z"])


@pytest.fixture(scope="module")
def demo() -> ReplayResult:
    """The example as `make demo` plays it."""

    async def played() -> ReplayResult:
        counter = TokenCounter()
        await counter.load()
        provider = OfflineProvider(counter.count, context_window=40_000, max_output_tokens=4_000)
        return await replay(read_session(EXAMPLE), Setup(provider=provider, name="offline", source=EXAMPLE.name))

    return asyncio.run(played())


def large() -> ReplayResult:
    """What a very long session with long texts in a large window leaves behind."""
    text = "long text " * 3_000
    ledger = tuple(Fact("id", f"ORDER-{at}") for at in range(300))
    rows = tuple(RenderedRow(number, "user", None, f"about ITEM-{number}") for number in range(1, 20_001))
    nodes = tuple(
        SummaryNode(f"k{at}", 0, at * 100 + 1, at * 100 + 100, False, Summary(f"k{at}", 0, text, ledger, 7, 9))
        for at in range(200)
    )
    said = user(text)
    told = ReplayResult(provider="x", budget=1_000_000)
    told.rows, told.row_tokens = [said] * 20_000, [3_000] * 20_000
    told.messages, told.requests = 20_000, 60_000
    told.request_lines = [RequestLine(row, 1_000 + row * 37 % 991, 3, row) for row in range(1, 60_001)]
    shown = tuple(ShownRow("verbatim", said, 3_000, number) for number in range(1, 20_001))
    views = [ViewChange(min(at, 5_000), (at % 20_000,)) for at in range(60_000)]
    told.views = Views(shown, tuple(views))
    told.boundaries = [CompactionLine(30_011, 9, 5, 1, 0, 0, 0, 0, "threshold")]
    told.snapshot = Snapshot(nodes, rows, ())
    told.redact = False
    return told
