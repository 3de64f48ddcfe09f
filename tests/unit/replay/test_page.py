"""What a replay tells, and its page: what that shows, that nothing on it runs or is loaded, and no secrets."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from itertools import combinations, pairwise
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_summarize import Config, SummarizingContextManager
from context_summarize.replay import ReplayResult, render_page, replay
from context_summarize.replay.chart import chart
from context_summarize.replay.result import RequestSize
from context_summarize.testing import ScriptedProvider
from tests.support.rows import assistant, call, result, tool_session, user

HOSTILE = [
    "</script>", "<script>a()</script>", "<!--", "-->", "<img src=x onerror=a()>", "<a href='javascript:a()'>", "]]>",
    "&lt;", "&#60;script&#62;", '"', "'", "`", "\u2028", "\u202e", "\ud800", "\x00", "<svg/onload=a()>", "</style>",
    "</title>", "<base href=//x>", "<meta http-equiv=refresh content=0>", "</pre>", "</details>",
]  # fmt: skip
KEY = "AKIA" + "Q7X2M5V6K3J7W4T6"


class Markup(HTMLParser):
    """The elements of a page, as a browser reads it, each with the names of its attributes; all are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.kinds: set[tuple[str, ...]] = set()
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.add((tag, *sorted(name for name, _ in attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.kinds.add(("<!--",))


def played(rows: list[Any], answer: str = "Goal: it was done.", **given: Any) -> ReplayResult:
    """A replay in a window of 4,000 tokens."""
    provider = ScriptedProvider(context_window=4_000, max_output_tokens=500, then=answer)
    config = Config.from_mapping({"segment_tokens": 256, **given})
    return asyncio.run(replay(rows, provider, config=config, name=answer))


def session(texts: list[str], turns: int = 12) -> list[Any]:
    """A session that holds these texts in every place where a text can be."""
    rows: list[Any] = []
    for turn in range(turns):
        text = texts[turn % len(texts)]
        rows += [
            user(f"Always look up {turn}. {text}"),
            call(f"c{turn}", f"read{text}", text=text, path=f"{turn}{text}"),
            result(f"c{turn}", f"value-{turn:04d} {text} " * 30, f"read{text}"),
            assistant(f"Done with {turn}. {text}"),
        ]
    return rows


@pytest.fixture(scope="module")
def told() -> ReplayResult:
    return played(tool_session(60, size=400))


def test_it_shows_every_compaction_with_its_new_summaries(told: ReplayResult) -> None:
    """Each summary once, where it was made; a merged one says so."""
    page = render_page(told, "session.jsonl")
    opened = [re.sub("<.*?>", "", text) for text in re.findall("<summary>(.*?)</summary>", page)]
    assert "<h1>session.jsonl</h1>" in page
    assert len(told.compactions) >= 3
    for number, line in enumerate(told.compactions, 1):
        assert f'id="compaction-{number}"' in page
        assert f'href="#compaction-{number}"' in page
        assert any(f"{line.before:,} → {line.after:,} tokens" in text for text in opened)
    marks = [row["metadata"] for line in told.compactions for row in line.made_rows]
    spans = {tuple(mark["messages"]) for mark in marks if "messages" in mark}
    names = [text for text in opened if text.startswith("Messages")]
    assert len(names) >= len(spans)
    assert all(any(text.startswith(f"Messages {first:,} to {last:,}") for text in names) for first, last in spans)
    assert any("merged (level 1)" in text for text in names)


@pytest.mark.parametrize("budget", [1_000_000, 150_000])
def test_the_chart_fills_its_picture_and_its_texts_lie_apart(budget: int) -> None:
    """Six pixels a letter. A history that is much larger leaves at the top, so that requests can be read."""
    sizes = [RequestSize(at, at * budget // 10, at * budget // 10) for at in range(1, 9)]
    drawn = chart(ReplayResult("x", budget, requests=sizes, history_tokens=20 * budget))
    _, _, width, height = map(int, drawn.attrib["viewBox"].split())
    texts = []
    for one in drawn.iter("text"):
        x, y, long = int(one.attrib["x"]), int(one.attrib["y"]), 6 * len(one.text or "")
        left = x - {"end": long, "middle": long // 2}.get(one.attrib.get("text-anchor", ""), 0)
        texts.append((left, left + long, y))
    assert all(left >= 0 and right <= width and y <= height for left, right, y in texts)
    assert max(right for _, right, _ in texts) > 0.85 * width
    assert max(y for *_, y in texts) > 0.85 * height
    assert not [1 for a, b in combinations(texts, 2) if a[0] < b[1] and b[0] < a[1] and abs(a[2] - b[2]) < 12]
    figures = [left for left, right, y in texts if right < 100 and y < 0.85 * height]
    assert min(figures) < 30
    at = next(float(line.attrib["d"].split(",")[1].split("H")[0]) for line in drawn if line.get("class") == "budget")
    assert 0.25 < 1 - at / max(y for *_, y in texts) < 0.35


def test_nothing_runs_and_nothing_is_loaded(told: ReplayResult) -> None:
    """Also by its own policy, which allows its style alone; links lead into the page."""
    page = render_page(told, "session.jsonl")
    tags, names = ({name for kind in Markup(page).kinds for name in kind[part]} for part in (slice(1), slice(1, None)))
    assert {"script", "img", "link", "iframe", "object", "form", "base"}.isdisjoint(tags)
    assert not [name for name in names if name.startswith("on") or name in ("src", "style", "srcset", "action")]
    assert set(re.findall('href="(.)', page)) == {"#"}
    assert not re.search(r"url\(|@import", page)
    [policy] = re.findall('Content-Security-Policy" content="(.*?)"', page)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.fixture(scope="module")
def plain() -> Markup:
    return Markup(render_page(played(session(["one", "two", "three"])), "a"))


@given(texts=st.lists(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), max_size=6).map("".join), min_size=3))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_of_a_session_becomes_markup(plain: Markup, texts: list[str]) -> None:
    """The page has the elements and the attributes that a harmless session's page has, and no others."""
    page = render_page(played(session(texts), answer=f"Goal: it was done. {texts[0]}"), f"{texts[1]}.jsonl")

    assert Markup(page).kinds <= plain.kinds
    assert page.encode()


def test_secrets_are_masked_unless_the_settings_say_otherwise() -> None:
    rows = session([f"The key is {KEY} and the word is tulip-77.", "nothing"])
    echo = f"Goal: use {KEY} and tulip-77."

    page = render_page(played(rows, echo, redact=["tulip-[0-9]+"]), f"{KEY} session")
    bare = render_page(played(rows, echo, redact=False), f"{KEY} session")

    assert KEY not in page
    assert "tulip-77" not in page
    assert KEY in bare


def scripted(**options: Any) -> ScriptedProvider:
    return ScriptedProvider(context_window=8_000, max_output_tokens=1_000, **options)


async def test_a_session_that_does_not_fit_is_told_compaction_by_compaction() -> None:
    rows, provider, seen = tool_session(60, size=800), scripted(), list[None]()

    told = await replay(rows, provider, progress=lambda: seen.append(None))

    assert told.failed is None
    assert len(told.compactions) >= 3
    assert all(line.before > line.after > 0 for line in told.compactions)
    assert all(rows[line.row - 1]["role"] == "assistant" for line in told.compactions)
    assert {line.event["reason"] for line in told.compactions} == {"threshold"}
    assert told.totals.calls == provider.calls == told.made_summaries > 0
    assert told.totals.input_tokens > told.totals.output_tokens > 0
    assert all(one.tokens >= two.cached > 0 for one, two in pairwise(told.requests))
    assert told.largest_view <= told.budget < told.history_tokens
    after = {request.row: request.tokens for request in told.requests}
    assert all(after[line.row] == line.after for line in told.compactions)
    spans = [row["metadata"]["messages"] for row in told.compactions[-1].made_rows if "messages" in row["metadata"]]
    assert spans[0][0] == 1
    assert spans[-1][1] < told.compactions[-1].row
    assert len(seen) == len(rows)


@pytest.mark.parametrize(
    ("view", "kept", "name", "says"),
    [
        ([user("a")], [user("A"), assistant("b")], "History intact", "message 1 is not what was added"),
        ([user("a")], [user("a")], "History intact", "2 rows were added, 1 are kept"),
        ([user("a"), result("1")], None, "Pairs intact", "before message 2, view row 1: result '1' without its call"),
        ([user("a"), {"role": "assistant", "content": None}], None, "Valid rows", "view row 1: 2 validation errors"),
        ([user("x " * 2_000)], None, "Within budget", "holds 2,00[0-9] tokens, the budget is 1,000"),
    ],
)
async def test_a_broken_promise_fails_its_check_with_the_first_problem(
    monkeypatch: pytest.MonkeyPatch, view: list[Any], kept: list[Any] | None, name: str, says: str
) -> None:
    """The checks look at rows alone: a manager that breaks a promise is found out."""
    fed = [user("a"), assistant("b")]
    monkeypatch.setattr(SummarizingContextManager, "get_messages_for_request", AsyncMock(return_value=view))
    monkeypatch.setattr(SummarizingContextManager, "get_messages", AsyncMock(return_value=kept or fed))

    told = await replay(fed, scripted(), token_budget=1_000)

    assert told.failed is not None
    assert told.failed.name == name
    assert told.failed.first is not None
    assert re.search(says, told.failed.first)
    assert (told.problem or "").startswith(f"FAILED: {name}: ")
