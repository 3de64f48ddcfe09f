"""Samples in the pages are what the recorded session shows: the notes of the README, two requests."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from pathlib import Path

import pytest

from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay import open_recording, replay, row_text
from context_summarize.tokens.counter import TokenCounter
from examples import demo
from tests.support.pages import PAGES, blocks, prose, table
from tests.support.paths import ROOT

RECORDING = open_recording(str(ROOT / "examples" / "airline-desk.jsonl")).rows
README, START = (next(page for page in PAGES if page.name == name) for name in ("README.md", "start.md"))


@cache
def first_compaction() -> tuple[list[JsonRow], list[JsonRow]]:
    """The requests right before and after the first compaction of the demo."""

    async def played() -> tuple[list[JsonRow], list[JsonRow]]:
        context = SummarizingContextManager()
        provider = OfflineProvider(TokenCounter().count, context_window=40_000, max_output_tokens=4_000)
        before, after = list[JsonRow](), list[JsonRow]()
        for row in RECORDING:
            if row["role"] == "assistant":
                before, after = after, await context.get_messages_for_request(provider=provider)
                await context.settle()
            if len(after) < len(before):
                break
            await context.add_message(row)
        await context.close()
        return before, after

    return asyncio.run(played())


def test_the_page_shows_the_request_after_a_compaction() -> None:
    """How many rows there are before it and after it, and the beginnings of the first ones and the last."""
    before, after = first_compaction()
    page = " ".join(prose(START).split())
    assert f"first compaction has {len(before)} rows" in page
    assert f"next has {len(after)} rows" in page
    [(_, sample)] = blocks("rows")
    head, tail = (part.splitlines() for part in sample.strip().split("\n…\n"))
    for line, row in zip([*head, *tail], [*after[: len(head)], *after[-len(tail) :]], strict=True):
        role, text = line.split(maxsplit=1)
        assert role == row["role"]
        assert row_text(row).startswith(text.removesuffix("…").rstrip())


@pytest.mark.ci
async def test_the_readme_says_how_the_demo_goes() -> None:
    provider = OfflineProvider(TokenCounter().count, context_window=40_000, max_output_tokens=4_000)
    played = await replay(RECORDING, provider)
    times = ("nine", "ten", "eleven", "twelve")[len(played.compactions) - 9]
    page = README.read_text("utf-8")
    assert f"grows to {played.history_tokens:,} tokens" in page
    assert f"each of {times} compactions" in page


async def test_the_demo_finds_early_words_in_the_request_and_by_recall_and_not_in_a_plain_cut(tmp_path: Path) -> None:
    """Also that the customer said them, in that message. A question whose words occur nowhere is held nowhere."""
    rows = RECORDING[:640]
    result, questions = await demo.play(rows, str(tmp_path / "summaries.db"))
    assert result.failed is None
    numbered = dict(zip(result.numbers, rows, strict=True))
    for question in questions:
        row = numbered[question["message"]]
        assert row["role"] == "user"
        assert all(fact in row["content"] for fact in question["facts"])
        assert question["cut"] is None
        for view in ("request", "recall"):
            assert all(f"»{fact}«" in question[view] for fact in question["facts"])
    assert demo.line_with(["zeppelin"], [row_text(row) for row in rows]) is None


def test_the_readme_shows_the_thread_of_the_first_compaction_of_the_demo() -> None:
    """Each part between two gaps stands in them, in order; so do the numbers of summaries and messages before it."""
    [sample] = (text for page, text in blocks("text") if page == README)
    shown = [row_text(row) for row in first_compaction()[1]]
    [thread] = (text for text in shown if text.startswith("[Thread of messages "))
    at = 0
    for part in filter(None, re.split(r"\s*(?:(?<!\[)…|…(?!\]))\s*|\n", sample.strip())):
        at = thread.index(part, at) + len(part)
    [told] = re.findall(r"(\w+) summaries and this thread replace (\d+) messages", README.read_text("utf-8"))
    summaries = sum(re.search(r"(?m)^\[Summary \w+ of messages ", text) is not None for text in shown)
    assert told == (("no", "one", "two", "three", "four")[summaries], sample.split(":")[0].split()[-1])


FIGURES = {
    "facts": ("field", {"session": "field-40k", "summariser": "keeps-95"}, lambda line: f"{400 * line['facts']:.0f}"),
    "dollars": ("field", {"session": "field-40k", "summariser": "keeps-95"}, lambda line: f"{line['dollars_sol']:.2f}"),
    "the": ("cuts sealed", {"text": "view"}, lambda line: f"{line['sentences'] * line['of_sentences']:.0f}"),
}
"""By the first word of a line of the README's table: which part of the saved figures, which lines, which figure."""


def test_the_readme_has_the_saved_figures() -> None:
    """Of each library, those of the variant that keeps most; with each part its command and its commit."""
    head, *lines = table(README.read_text("utf-8"))
    saved = json.loads((ROOT / "docs" / "benchmarks.json").read_text("utf-8"))
    assert {line[0].split()[0].strip(",") for line in lines} == set(FIGURES)
    for title, *cells in lines:
        part, wanted, figure = FIGURES[title.split()[0].strip(",")]
        assert saved[part]["command"].startswith("python -m benchmarks.")
        assert len(saved[part]["commit"]) == 40
        for library, told in zip(head[1:], cells, strict=True):
            name = "Ours" if library == "this module" else library
            kept = [one for one in saved[part]["figures"] if wanted.items() <= one.items()]
            own = [one for one in kept if one["contestant"] in (name, f"{name}Whole")]
            best = max(own, key=lambda one: one["facts"] if "facts" in one else one["of_sentences"])
            assert told.strip("*") == figure(best), f"{title}, {library}"
