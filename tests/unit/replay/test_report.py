"""What a report holds, that recorded text stays text in it, and how it behaves in a real browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from context_summarize import Config
from context_summarize.core.nodes import Summary
from context_summarize.errors import ReportUnwritable
from context_summarize.facts.fact import Fact
from context_summarize.messages.rows import JsonRow
from context_summarize.replay.player import Setup, replay
from context_summarize.replay.report import render_report, write_report
from context_summarize.replay.result import CompactionLine, ReplayResult, RequestLine
from context_summarize.session.snapshot import Snapshot, SummaryNode, ViewOrigin
from context_summarize.testing import ScriptedProvider, assistant, call, result, tool_session, user
from context_summarize.transcript.rows import RenderedRow
from tests.support.browser import Browser, Page, find_chromium

HOSTILE = (
    "</script><script>window.hacked = 1</script><!--<script> --> <img src=x onerror='window.hacked = 1'>"
    "<a href='javascript:window.hacked=1'>x</a> ]]> &lt;b&gt; \" ' ` ${window.hacked = 1} \u2028 \u202e \ud800 \x00"
)
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


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
    settings = {"fan_in": 2, "summary_share": 0.12} | options
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


# --- the page as text -----------------------------------------------------------------------------------------------


@dataclass
class Parsed(HTMLParser):
    """What an HTML parser sees: elements with their attributes, and the text in styles and scripts."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        if self.cdata_elem:
            self.raw.append(data)


def parsed(page: str) -> Parsed:
    parser = Parsed()
    parser.feed(page)
    parser.close()
    return parser


def block(page: str) -> dict[str, Any]:
    """The data of a page, found as a browser finds it."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script', page, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_data_block_decodes_to_what_the_replay_saw(plain):
    """Totals, checks, requests, compactions and the last view are those of the result."""
    data = block(render_report(plain))

    assert (data["source"], data["provider"], data["offline"]) == ("session.jsonl", "scripted", False)
    assert (data["window"], data["budget"], data["threshold"], data["target"]) == (8_000, 6_000, 4_200, 1_800)
    assert data["settings"] == {"fan_in": "2", "summary_share": "0.12"}
    assert all(value == getattr(plain, name) for name, value in data["totals"].items())
    assert [(check["name"], check["ok"]) for check in data["checks"]] == [(c.name, c.ok) for c in plain.checks]
    assert data["requests"] == [[n, line.row, line.tokens] for n, line in enumerate(plain.request_lines, 1)]
    assert len(data["boundaries"]) == len(plain.boundaries) >= 5
    for told, line in zip(data["boundaries"], plain.boundaries, strict=True):
        assert data["requests"][told["request"] - 1] == [told["request"], line.row, line.after_tokens]
    assert [row["role"] for row in data["view"]] == [row["role"] for row in plain.last_view]
    assert sum(row["tokens"] for row in data["view"]) == plain.request_lines[-1].tokens


def test_the_tree_holds_every_summary_with_its_sources(plain):
    """Neighbours follow each other without a gap, at every level, down to messages that are all there."""
    data = block(render_report(plain))

    def check(nodes: list[dict[str, Any]], first: int) -> int:
        for node in nodes:
            assert node["kept"]
            assert node["first"] == first
            assert not node["children"] or check(node["children"], first) == node["last"]
            first = node["last"] + 1
        return first - 1

    last = check(data["nodes"], 1)
    assert max(node["level"] for node in data["nodes"]) >= 1
    assert [message[0] for message in data["messages"]] == list(range(1, last + 1))
    assert data["messages"][0][1:] == ["user", "", "Begin. ", 0]
    assert data["messages"][2][1:3] == ["tool", "read"]
    spans = [tuple(row["span"]) for row in data["view"] if row["kind"] == "summary"]
    assert spans == [(node["first"], node["last"]) for node in data["nodes"]]


def test_recorded_text_adds_no_element_and_no_comment(plain, hostile):
    """A parser sees the same elements in a hostile page as in a harmless one; the text itself is kept."""
    page, harmless = parsed(render_report(hostile)), parsed(render_report(plain))

    assert page.elements == harmless.elements
    assert page.comments == harmless.comments == []
    assert len(page.raw) == 3
    data = block(render_report(hostile))
    assert data["source"] == HOSTILE
    assert data["messages"][0][3] == f"Begin. {HOSTILE}"
    # A summary is stored without lone surrogates, which no client could send.
    assert HOSTILE.replace("\ud800", "\ufffd") in data["nodes"][-1]["text"]


def test_a_page_is_valid_utf_8_whatever_was_recorded(hostile, tmp_path):
    """A lone surrogate is no character, and a tool's output may hold one."""
    write_report(hostile, tmp_path / "report.html")

    assert (tmp_path / "report.html").read_bytes().decode("utf-8") == render_report(hostile)


def test_the_policy_lets_the_pages_own_style_and_script_run_and_nothing_else(plain):
    page = parsed(render_report(plain))
    [policy] = [named["content"] for tag, named in page.elements if named.get("http-equiv")]
    style, _, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in page.raw
    )

    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src {style}",
        f"script-src {script}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_the_page_asks_for_nothing_from_elsewhere(plain):
    page = parsed(render_report(plain))
    style, _, script = page.raw

    builder = [named[key] for _, named in page.elements for key in ("src", "href", "srcset") if key in named]
    assert builder == ["data:,"]
    assert "url(" not in style
    assert "@import" not in style
    assert script.replace("http://www.w3.org/2000/svg", "").count("http") == 0
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|innerHTML|outerHTML|insertAdjacentHTML|eval)\b", script)


def test_secrets_are_masked_unless_the_settings_say_otherwise():
    """Originals and the last view are shown to whoever gets the page, so the setting holds for them too."""
    rows = session(40, f" {SECRET} ")

    assert SECRET not in render_report(replayed(rows))
    assert "[redacted: " in render_report(replayed(rows))
    assert SECRET in render_report(replayed(rows, redact=False))


def test_shortened_rows_are_told_from_whole_ones():
    rows = [user("Begin.")]
    for turn in range(30):
        text = "word " * (1_100 if turn % 5 == 3 else 100)
        rows += [call(str(turn), "read"), result(str(turn), text, "read"), user(f"next {turn}")]
    told = replayed(
        [*rows, assistant("x")], elide_tool_results=200, keep_recent=4, target_usage=0.5, segment_tokens=1_000
    )

    shortened = [row for row in block(render_report(told))["view"] if row["kind"] == "shortened"]

    assert shortened
    assert all(row["whole_tokens"] > 1_000 > row["tokens"] for row in shortened)
    assert all(rows[row["row"] - 1]["content"] == "word " * 1_100 for row in shortened)
    assert all("characters left out to save room" in row["parts"][0][2] for row in shortened)
    assert {row["parts"][0][1] for row in shortened} == {"read"}


def test_calls_and_results_are_told_from_speech(plain):
    view = block(render_report(plain))["view"]

    at = next(at for at, row in enumerate(view) if row["kind"] == "verbatim" and len(row["parts"]) == 2)
    speech, made = view[at]["parts"]
    assert speech == ["text", "", "I look at it. "]
    assert made[:2] == ["call", "read"]
    assert json.loads(made[2])["path"].startswith("src/file_")
    assert view[at + 1]["parts"][0][:2] == ["result", "read"]


def large() -> ReplayResult:
    """What a very long session with long texts in a large window leaves behind."""
    text = "long text " * 3_000
    ledger = tuple(Fact("id", f"ORDER-{at}") for at in range(300))
    rows = tuple(RenderedRow(number, "user", None, text) for number in range(1, 20_001))
    nodes = tuple(
        SummaryNode(f"k{at}", 0, at * 100 + 1, at * 100 + 100, False, Summary(f"k{at}", 0, text, ledger, 7, 9))
        for at in range(200)
    )
    view = [user(text)] * 5_000
    told = ReplayResult(provider="x", budget=1_000_000, last_view=view, last_sizes=[3_000] * len(view))
    told.request_lines = [RequestLine(row, 1_000 + row * 37 % 991, 3) for row in range(1, 60_001)]
    told.boundaries = [CompactionLine(30_011, 9, 5, 1, 0, 0, 0, 0, "threshold")]
    told.snapshot = Snapshot(nodes, rows, (ViewOrigin(),) * len(view))
    told.redact = False
    return told


def test_a_page_stays_of_a_size_that_a_browser_opens_whatever_the_session():
    """Long texts are cut and say by how much; of very many rows the middle of each node goes."""
    told = large()
    page = render_report(told)
    data = block(page)

    assert len(page.encode()) < 4_000_000
    assert {message[4] for message in data["messages"]} == {30_000 - len(data["messages"][0][3])}
    numbers = {message[0] for message in data["messages"]}
    assert all({node["first"], node["last"]} <= numbers for node in data["nodes"])
    assert data["view"][-1]["at"] == 5_000
    assert "characters not in this page]" in data["view"][0]["parts"][0][2]
    assert "characters not in this page]" in data["nodes"][0]["text"]
    assert (len(data["nodes"][0]["ledger"]), data["nodes"][0]["facts_left_out"]) == (100, 200)


def test_a_long_chart_keeps_its_ends_its_extremes_and_its_compactions():
    told = large()
    tokens = [line.tokens for line in told.request_lines]
    points = block(render_report(told))["requests"]

    assert len(points) <= 2_100
    assert (points[0][0], points[-1][0]) == (1, 60_000)
    assert 30_011 in {point[0] for point in points}
    assert {min(tokens), max(tokens)} <= {point[2] for point in points}
    assert points == sorted(points)


def test_a_file_that_cannot_be_written_is_told_with_its_name(plain, tmp_path):
    with pytest.raises(ReportUnwritable, match=r"none/report.html cannot be written: No such file"):
        write_report(plain, tmp_path / "none" / "report.html")


# --- the page in a browser ------------------------------------------------------------------------------------------

browser_tests = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium or Chrome is installed (Debian: apt-get install chromium)")
    with Browser(program) as started:
        yield started


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Writes the page of a result into a file and names it."""

    def write(told: ReplayResult) -> Path:
        path = tmp_path_factory.mktemp("report") / "report.html"
        write_report(told, path)
        return path

    return write


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


def open_all(page: Page) -> None:
    """Open every node, every list of messages and every long text, until nothing is left to open."""
    closed = "document.querySelectorAll('.node[aria-expanded=false], .action:not([aria-expanded=true])')"
    for _ in range(20):
        page.evaluate(f"{closed}.forEach((button) => button.click())")
    assert page.evaluate(f"{closed}.length") == 0


@browser_tests
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_page_shows_everything_without_an_error_in_any_theme_and_width(browser, page_of, plain, width, dark):
    path = page_of(plain)
    page = browser.open(path, width=width, dark=dark)

    assert page.evaluate("document.title") == "Replay of session.jsonl"
    assert page.evaluate("document.querySelectorAll('.checks .ok').length") == len(plain.checks)
    assert page.evaluate("document.querySelectorAll('.compaction').length") == len(plain.boundaries)
    assert page.evaluate("document.querySelectorAll('#compactions tbody tr').length") == len(plain.boundaries)
    assert page.evaluate("document.querySelectorAll('#tree > li').length") == len(plain.snapshot.nodes)
    assert page.evaluate("document.querySelectorAll('#view > .row').length") == len(plain.last_view)
    assert page.evaluate("document.querySelector('svg').getBoundingClientRect().width") <= width
    assert overflow(page) <= 0
    open_all(page)
    assert overflow(page) <= 0
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (int(shade) < 128) is dark
    assert page.problems() == []
    assert page.requested() == [path.resolve().as_uri()]


@browser_tests
def test_a_click_opens_a_node_its_children_and_the_messages_it_stands_for(browser, page_of, plain):
    page = browser.open(page_of(plain))
    node, item = plain.snapshot.nodes[0], "#tree > li:first-child"
    assert node.children
    while True:
        assert page.evaluate(f"document.querySelector('{item} > .detail').hidden")
        page.click(f"{item} > .node")
        assert page.evaluate(f"document.querySelector('{item} > .detail > .said').innerText") == node.summary.text
        shown = page.evaluate(f"document.querySelectorAll('{item} > .detail > .tree > li').length")
        assert shown == len(node.children)
        if not node.children:
            break
        node, item = node.children[0], f"{item} > .detail > .tree > li:first-child"
    while page.evaluate(f"!!document.querySelector('{item} .sources + .action')"):
        page.click(f"{item} .sources + .action")

    numbers = f"[...document.querySelectorAll('{item} .source .who span:first-child')].map((s) => s.innerText)"
    assert page.evaluate(numbers) == [str(number) for number in range(node.first, node.last + 1)]
    page.click("#tree > li > .node")
    assert page.evaluate("document.querySelector('.detail').hidden")
    assert page.problems() == []


@browser_tests
def test_the_keyboard_reaches_and_opens_a_node(browser, page_of, plain):
    page = browser.open(page_of(plain))
    for _ in range(20):
        page.press("Tab")
        if page.evaluate("document.activeElement.matches('.node')"):
            break
    opened = "document.activeElement.getAttribute('aria-expanded')"

    assert page.evaluate(opened) == "false"
    page.press("Enter")
    assert page.evaluate(opened) == "true"
    page.press(" ")
    assert page.evaluate(opened) == "false"
    page.press("ArrowDown")
    assert page.evaluate("document.activeElement.matches('#tree > li:nth-child(2) > .node')")


@browser_tests
def test_a_compaction_tells_its_figures_to_the_mouse_and_to_the_keyboard(browser, page_of, plain):
    page = browser.open(page_of(plain))
    first, second = plain.boundaries[:2]
    tip = "document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').innerText"

    page.hover(".compaction")
    assert f"{first.before_tokens:,} → {first.after_tokens:,} tokens" in page.evaluate(tip)
    assert f"row {first.row:,}" in page.evaluate(tip)
    page.hover("h1")
    assert page.evaluate(tip) == ""
    page.press("Tab")
    assert page.evaluate("document.activeElement.matches('.compaction')")
    page.press("ArrowRight")
    assert f"{second.before_tokens:,} → {second.after_tokens:,} tokens" in page.evaluate(tip)


@browser_tests
def test_the_chart_says_what_its_peaks_are(browser, page_of, plain):
    """They may stand above the budget, though no request does."""
    caption = "document.querySelector('#chart + p')?.innerText ?? ''"

    assert "the size before a compaction. It is not sent" in browser.open(page_of(plain)).evaluate(caption)
    assert browser.open(page_of(replayed(tool_session(3)))).evaluate(caption).startswith("No compaction")


@browser_tests
@pytest.mark.parametrize("width", [1280, 400])
def test_hostile_text_is_shown_as_text_and_does_not_run(browser, page_of, hostile, width):
    page = browser.open(page_of(hostile), width=width)
    open_all(page)

    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.evaluate("document.querySelectorAll('img, a, b.x, iframe, main script').length") == 0
    assert "<script>window.hacked = 1</script>" in page.evaluate("document.querySelector('h1').textContent")
    assert "<img src=x onerror=" in page.evaluate("document.querySelector('.source .said').textContent")
    assert "<img src=x onerror=" in page.evaluate("document.querySelector('#view .row').textContent")
    assert overflow(page) <= 0
    assert page.problems() == []


@browser_tests
def test_even_a_script_that_got_into_the_page_would_not_run(browser, page_of, plain):
    """The policy is in force: an element that is put in from outside is refused, and said to be."""
    page = browser.open(page_of(plain))

    page.evaluate(
        "(() => { const it = document.createElement('script'); it.textContent = 'window.hacked = 1';"
        " document.body.append(it); document.body.insertAdjacentHTML('beforeend',"
        ' \'<img src="data:," onerror="window.hacked = 1">\'); })()'
    )

    assert page.evaluate("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in problem for problem in page.problems())


@browser_tests
@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([user("a")], "there is no request to show"),
        (tool_session(3), "nothing was summarised"),
        ([user("a"), assistant("b")], "No compaction ran"),
    ],
)
def test_a_session_without_requests_or_compactions_is_told_in_words(browser, page_of, rows, says):
    page = browser.open(page_of(replayed(rows)))

    assert says in page.evaluate("document.querySelector('main').innerText")
    assert page.problems() == []


@browser_tests
def test_a_broken_check_stands_out_with_its_first_problem(browser, page_of):
    told = replayed(tool_session(3))
    told.checks[1].note(["the request before row 5, view row 1: result '1' without its call"])
    page = browser.open(page_of(told))

    assert page.evaluate("document.querySelector('.broken').innerText").splitlines()[-1] == told.checks[1].first
    assert page.evaluate("document.querySelectorAll('.broken .mark')[0].innerText") == "✗"


@browser_tests
def test_a_very_long_session_opens_and_says_what_is_left_out(browser, page_of):
    page = browser.open(page_of(large()))
    page.click("#tree > li > .node")

    text = page.evaluate("document.querySelector('main').innerText")
    assert "200 more values not in this page" in text
    assert "more characters not in this page" in text
    assert "messages left out of this page" in text
    assert "rows left out of this page" in text
    assert page.problems() == []
