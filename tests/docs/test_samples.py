"""Samples in the pages are what the recorded session shows: the notes of the README, two requests, what a day costs."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from benchmarks import day
from benchmarks.tokens import said
from benchmarks.words import NAME, identifiers, places
from context_summarize import SummarizingContextManager
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay import open_recording, replay, row_text
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from tests.support.pages import PAGES, blocks, prose
from tests.support.paths import ROOT

RECORDING = open_recording(str(ROOT / "examples" / "airline-desk.jsonl")).rows
README, START = (next(page for page in PAGES if page.name == name) for name in ("README.md", "start.md"))


async def _requests(until: int) -> list[list[JsonRow]]:
    """The requests of the demo's first rows."""
    count = TokenCounter().count
    context = SummarizingContextManager()
    provider = OfflineProvider(count, context_window=40_000, max_output_tokens=4_000)
    found = []
    for row in RECORDING[:until]:
        if row["role"] == "assistant":
            found.append(await context.get_messages_for_request(provider=provider))
            await context.settle()
        await context.add_message(row)
    await context.close()
    return found


def _shows(rows: list[JsonRow], sample: str) -> None:
    """Each line of the sample is the beginning of a row, in order; those on either side of a gap are at the ends."""
    head, tail = (part.strip("\n").splitlines() for part in re.split(r"^…$", sample, flags=re.M))
    for lines, shown in ((head, rows), (tail, rows[-len(tail) :])):
        for line, row in zip(lines, shown, strict=False):
            role, text = line.split(maxsplit=1)
            assert role == row["role"]
            assert row_text(row).startswith(text.removesuffix("…").rstrip())


async def test_the_page_shows_a_request_before_and_after_a_compaction() -> None:
    """The rows that are shown, and how many there are."""
    found = await _requests(220)
    before, after = next(pair for pair in pairwise(found) if len(pair[1]) < len(pair[0]))
    for rows, block in zip((before, after), (block.text for block in blocks("rows")), strict=True):
        _shows(rows, block)
    assert f"{len(before)} rows" in prose(START)
    assert f"{len(after)} rows" in prose(START)


@pytest.mark.ci
async def test_the_readme_says_what_the_demo_keeps() -> None:
    """Shares of the identifiers that its last request holds, how often it is compacted, and the size of its history."""
    provider = OfflineProvider(TokenCounter().count, context_window=40_000, max_output_tokens=4_000)
    played = await replay(RECORDING, provider)
    shown = "\n".join(map(said, played.last_view))
    page = README.read_text("utf-8")
    for role, told in (
        ("user", r"(\d+) % of those that the\s+user"),
        ("assistant user tool", r"(\d+) % of all identifiers"),
    ):
        rows = [row for row in RECORDING if row["role"] in role]
        found = {name for row in rows for name, kind in identifiers(said(row)).items() if kind != NAME}
        held = round(100 * sum(bool(places(shown, name)) for name in found) / len(found))
        assert re.findall(told, page) == [str(held)]
    times = ("six", "seven", "eight", "nine", "ten")[len(played.compactions) - 6]
    assert f"grows to {played.history_tokens:,} tokens" in page
    assert f"each of {times} compactions" in page


@pytest.mark.ci
async def test_the_pages_say_what_a_day_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Dollars for each model in the table, but for a cent or two; the README has those of the first model."""
    await day.main()
    made = re.findall(r"^(.+): .*?([\d.]+), \D*([\d.]+), \D*([\d.]+); \D*([\d.]+)$", capsys.readouterr().out, re.M)
    table = START.read_text("utf-8").replace("**", "")
    told = re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", table, re.M)
    assert [row[0] for row in told] == [row[0] for row in made]
    for there, here in zip(told, made, strict=True):
        assert [float(dollars) for dollars in there[1:]] == pytest.approx(
            [float(dollars) for dollars in here[1:]], abs=0.02
        )
    model, _, summaries, together, whole = told[0]
    readme = README.read_text("utf-8")
    assert f"costs {together} dollars with {model}, {summaries} of them" in readme
    assert f"whole history costs {whole}\n" in readme


async def test_the_readme_shows_the_notes_beside_its_summary() -> None:
    """Those that stand beside the summary which the README shows."""
    summary, notes = (block.text for block in blocks("text") if block.page == README)
    inside = summary.split("\n", 3)[3].partition("\n[End")[0]  # without the frame and the apology
    provider = ScriptedProvider(then=inside, context_window=40_000, max_output_tokens=4_000)
    context = SummarizingContextManager(prompts="small", prefetch=False)
    for row in RECORDING[:66]:
        await context.add_message(row)
    await context.get_messages_for_request(provider=provider)
    await context.compact()
    shown = [row_text(row) for row in await context.get_messages_for_request(provider=provider)]
    await context.close()
    framed, written = shown[2:4] if RECORDING[0]["role"] == "system" else shown[1:3]
    assert framed.startswith(summary.partition(" …")[0])
    at = 0
    for part in re.split(r"\s*(?:(?<!\[)…|…(?!\]))\s*|\n", notes.strip()):
        at = written.index(part, at) + len(part)
