"""Exact values outlive a summariser that drops them all: recounted on recordings, by regular expressions of its own.

What counts, for every level-0 node that is shown, over the rendered rows it stands for:

* reservation ids: six capitals and digits, at least one of each; what follows `HAT` and three digits is a flight;
* flight numbers: `HAT` and three digits, those in listings of flights that nobody chose included;
* amounts: whatever anybody wrote with a dollar sign, and the numbers of JSON keys price, amount, total, cost and their
  compounds, in calls and results (bookings, payments, balances). The fares in listings of a flight search, which stand
  under the names of cabins, count once somebody has named one with a dollar sign or booked it, not before;
* paths: two or more parts from a slash on, or a name with one of the endings of source, text and settings files.

A value is held when it stands in the view as a whole word; an amount in either of its forms, `$250` or `250`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from context_summarize.messages.rows import JsonRow
from context_summarize.replay.session_files import read_session
from context_summarize.session.manager import SummarizingContextManager
from context_summarize.testing import ScriptedProvider
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from tests.support.effort import LONG
from tests.support.paths import ROOT
from tests.support.views import nodes as summaries

COUNT = TokenCounter().count
SHARED = ROOT / "tests" / "data"
AIRLINE = [SHARED / "airline-desk-1.jsonl", *([ROOT / "examples" / "airline-desk.jsonl"] if LONG else [])]
CODING = SHARED / "marshmallow-fix.jsonl"

SENTENCE = (
    "The user asked for changes, and the agent looked things up, explained the rules and did what was agreed upon. "
)
PROSE = (SENTENCE * 20)[:1_955]
"""About 409 tokens, the length of a summary in a window of 40,000; not one exact value in it."""

KINDS = {
    "reservation": re.compile(r"(?<!\w)(?!HAT\d{3}\b)(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{6}(?!\w)"),
    "flight": re.compile(r"(?<!\w)(HAT\d{3})(?!\w)"),
    "amount": re.compile(
        r"\$\s?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
        r"|\"(?:\w+_)?(?:price|amount|total|cost)\": (\d+(?:\.\d+)?)(?![\d.])"
    ),
    "path": re.compile(
        r"(?<![\w./-])(?:/[\w.-]*\w){2,}|(?<![\w./-])(?:[\w-]+/)*[\w-]+\.(?:py|md|rst|txt|toml|cfg|ini)(?!\w)"
    ),
}
BAR = 0.95


def values(kind: str, text: str) -> set[str]:
    """The distinct values of one kind; amounts as plain numbers."""
    found = (next((group for group in match.groups() if group), match[0]) for match in KINDS[kind].finditer(text))
    return {value.replace(",", "") if kind == "amount" else value for value in found}


def held(kind: str, value: str, view: str) -> bool:
    if kind == "amount":
        whole, point, cents = value.partition(".")
        value = f"{int(whole):,}".replace(",", ",?") + (re.escape(point + cents) if point else "")
        return re.search(rf"(?<![\w.,:-]){value}(?![\w:]|[.,]\d)", view) is not None
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", view) is not None


def text_of(rows: Sequence[JsonRow]) -> str:
    """All content of a view; what is no plain string as JSON."""
    contents = (row["content"] for row in rows)
    return "\n".join(c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in contents)


@dataclass
class Point:
    """What was recounted at one moment of a session."""

    wanted: dict[bool, Counter[str]] = field(default_factory=lambda: {False: Counter(), True: Counter()})
    kept: dict[bool, Counter[str]] = field(default_factory=lambda: {False: Counter(), True: Counter()})
    missing: list[str] = field(default_factory=list)

    def share(self, *, merged: bool = False, kind: str | None = None) -> float:
        """Share of the values that are in the view, 0…1."""
        kept, wanted = (
            sum(count for name, count in counts[merged].items() if kind in (None, name))
            for counts in (self.kept, self.wanted)
        )
        return kept / wanted if wanted else 1.0


async def recount(manager: SummarizingContextManager, view: Sequence[JsonRow]) -> Point:
    """The share of the exact values that summaries stand for and that are in the view."""
    point = Point()
    shown, seen = text_of(view), await manager.snapshot(view)
    for node in seen.nodes:
        source, merged = "\n".join(row.text for row in seen.messages[node.first - 1 : node.last]), node.level > 0
        for kind in KINDS:
            for value in values(kind, source):
                point.wanted[merged][kind] += 1
                if held(kind, value, shown):
                    point.kept[merged][kind] += 1
                elif not merged:
                    point.missing.append(f"{kind} {value}")
    return point


@pytest.mark.parametrize("path", AIRLINE, ids=lambda path: path.stem)
async def test_what_a_summariser_drops_is_in_the_view_all_the_same(path: Path) -> None:
    """At every compaction and at the end, 95 of 100 exact values of the level-0 nodes shown; sizes are bounded."""
    rows = read_session(path)
    provider = ScriptedProvider(then=PROSE, context_window=40_000, max_output_tokens=4_000)
    manager = SummarizingContextManager(action_share=0)  # what calls were given stands in summaries alone
    points: list[Point] = []
    nodes: list[int] = []
    summarised = 0
    view: list[JsonRow] = []
    for row in rows:
        if row["role"] == "assistant":
            view = await manager.get_messages_for_request(provider=provider)
            shown = summaries(view)
            if shown and shown[-1]["metadata"]["messages"][1] > summarised:
                summarised = shown[-1]["metadata"]["messages"][1]
                points.append(await recount(manager, view))
                nodes += [measure(node, COUNT) for node in shown if not node["metadata"]["level"]]
        await manager.add_message(row)
    end = await recount(manager, await manager.get_messages_for_request(provider=provider))
    await manager.close()
    assert len(points) >= 5
    assert any(point.wanted[True] for point in points), "merged nodes are part of what is measured"
    for point in (*points, end):
        assert sum(point.wanted[False].values()) > 100
        assert point.share() >= BAR, point.missing
    assert all(end.share(kind=kind) >= BAR for kind in KINDS), end.missing
    prose, ledger, frame = 409, 409 * 3 // 4, 70
    assert max(nodes) <= prose + ledger + frame
    assert all(not values(kind, PROSE) for kind in KINDS)


async def test_paths_of_a_coding_session_are_in_the_view_after_it_was_summarised() -> None:
    """A session that is smaller than the window, summarised on demand down to its newest group."""
    rows = read_session(CODING)
    provider = ScriptedProvider(then=PROSE, context_window=40_000, max_output_tokens=4_000)
    manager = SummarizingContextManager(keep_recent=0)
    for row in rows:
        await manager.add_message(row)
    await manager.get_messages_for_request(provider=provider)
    await manager.compact()
    point = await recount(manager, await manager.get_messages_for_request(provider=provider))
    await manager.close()
    assert point.wanted[False]["path"] >= 20
    assert point.share() >= BAR, point.missing
