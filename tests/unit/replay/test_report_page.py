"""How a report behaves in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from context_summarize.core.frames import node_text
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.inspection_page import render_inspection, write_inspection
from context_summarize.replay.report import write_report
from context_summarize.replay.result import ReplayResult
from context_summarize.testing import assistant, tool_session, user
from tests.support.browser import Browser, Page, find_chromium
from tests.support.replayed import hostile, large, plain, replayed

__all__ = ("hostile", "plain")

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
    closed = "document.querySelectorAll('.node[aria-expanded=false], .action:not(.link):not([aria-expanded=true])')"
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
    assert page.evaluate("document.querySelectorAll('#compactions > li').length") == len(plain.boundaries)
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


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        page.press("Tab")
        if page.evaluate(f"document.activeElement.matches('{selector}')"):
            return
    raise AssertionError(f"Tab does not reach {selector}")


@browser_tests
def test_the_keyboard_reaches_and_opens_a_node(browser, page_of, plain):
    page = browser.open(page_of(plain))
    tab_to(page, "#tree .node")
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
    assert f"answered by message {first.message:,}" in page.evaluate(tip)
    page.hover("h1")
    assert page.evaluate(tip) == ""
    tab_to(page, ".compaction")
    page.press("ArrowRight")
    assert f"{second.before_tokens:,} → {second.after_tokens:,} tokens" in page.evaluate(tip)
    page.press("Enter")
    assert page.evaluate("document.activeElement.matches('#compactions > li:nth-child(2) > .node[aria-expanded=true]')")


@browser_tests
@pytest.mark.parametrize("width", [1280, 400])
def test_an_opened_compaction_shows_the_request_without_it_and_with_it(browser, page_of, plain, width):
    page = browser.open(page_of(plain), width=width)
    item = "#compactions > li:nth-child(3)"
    line = plain.boundaries[2]
    page.click(f"{item} > .node")
    for _ in range(10):
        page.evaluate(f"document.querySelectorAll('{item} .minis + .action').forEach((more) => more.click())")

    heads = page.evaluate(f"[...document.querySelectorAll('{item} .side > .meta')].map((p) => p.innerText)")
    sizes = (line.before_tokens, line.after_tokens)
    assert all(f"{size:,} tokens" in head for size, head in zip(sizes, heads, strict=True))
    first, last = map(int, page.evaluate(f"document.querySelector('{item} .range').lastChild.textContent").split("–"))
    gone = page.evaluate(f"[...document.querySelectorAll('{item} .gone .where')].map((s) => s.innerText)")
    assert {f"message {number}" for number in range(first, last + 1)} <= set(gone)
    new = page.evaluate(f"[...document.querySelectorAll('{item} .new summary b')].map((b) => b.innerText)")
    assert set(new) == {"summary", "actions"}
    page.click(f"{item} .new summary")
    page.evaluate("new Promise((done) => setTimeout(done, 50))")  # an opened `details` tells of it a task later
    assert "[Summary of messages" in page.evaluate(f"document.querySelector('{item} .new .inside').innerText")
    assert overflow(page) <= 0
    assert page.problems() == []


@browser_tests
def test_the_slider_goes_over_all_requests(browser, page_of, plain):
    """With the arrow keys, the buttons and the chart's line; the rows add up to the size of the request."""
    page = browser.open(page_of(plain))
    shown = "document.getElementById('view-lede').innerText"
    rows = "document.querySelectorAll('#view > .row').length"
    last = len(plain.request_lines)
    assert page.evaluate(shown).startswith(f"Request {last} of {last}")

    page.evaluate("document.getElementById('slider').focus()")
    page.press("ArrowLeft")
    assert page.evaluate(shown).startswith(f"Request {last - 1} of {last}")
    assert page.evaluate(rows) == plain.request_lines[-2].rows
    before = page.evaluate("document.querySelector('.cursor').getAttribute('x1')")
    for place in (0, 40, 3, last - 1):
        page.evaluate(
            f"(() => {{ const it = document.getElementById('slider'); it.value = {place};"
            " it.dispatchEvent(new Event('input')); })()"
        )
        line = plain.request_lines[place]
        assert f"{line.tokens:,} of {plain.budget:,} tokens" in page.evaluate(shown)
        assert page.evaluate(rows) == line.rows
        assert page.evaluate("document.querySelector('.cursor').getAttribute('x1')") != before
    page.click("#earlier")
    assert page.evaluate(shown).startswith(f"Request {last - 1} of {last}")
    page.click("#later")
    assert page.evaluate("document.getElementById('later').disabled")
    assert page.problems() == []


@browser_tests
def test_a_search_finds_messages_and_summaries_and_leads_to_them(browser, page_of, plain):
    page = browser.open(page_of(plain))
    ask = (
        "(() => {{ document.getElementById('query').value = {0};"
        " document.getElementById('search').requestSubmit(); }})()"
    )

    page.evaluate(ask.format("'VALUE-0007'"))
    assert page.evaluate("document.querySelector('.result:not(.of-summary) mark').innerText") == "value-0007"
    # The result of the eighth turn: of its messages 30 to 33 the second.
    assert page.evaluate("document.querySelector('.result:not(.of-summary) b').innerText") == "message 31"
    page.click(".result:not(.of-summary) .action")
    assert "value-0007" in page.evaluate("document.querySelector('.result:not(.of-summary) .inside').innerText")
    page.click(".result:not(.of-summary) .link")
    assert page.evaluate("document.activeElement.matches('#tree .node[aria-expanded=true]')")
    page.evaluate(ask.format("'nothing has this'"))
    assert "0 messages and 0 summaries" in page.evaluate("document.getElementById('found').innerText")
    page.evaluate(ask.format("'it was done'"))
    page.click(".result.of-summary .link")
    assert page.evaluate("document.activeElement.matches('#tree .node[aria-expanded=true]')")
    assert page.problems() == []


@browser_tests
def test_a_lost_value_leads_to_the_messages_that_hold_it(browser, page_of, plain):
    page = browser.open(page_of(plain))
    page.click("#tree .node")
    value = page.evaluate("document.querySelector('.fact.lost').firstChild.textContent")

    page.click(".fact.lost")
    assert page.evaluate("document.getElementById('query').value") == value
    assert value in page.evaluate("document.querySelector('.result:not(.of-summary) mark').innerText")


@browser_tests
def test_the_terms_are_explained(browser, page_of, plain):
    page = browser.open(page_of(plain))
    page.click(".terms > summary")

    terms = page.evaluate("document.querySelector('.terms dl').innerText")
    assert all(term in terms for term in ("message", "compaction", "ledger", "lost", "actions", "fallback summary"))


@browser_tests
def test_the_chart_says_what_its_peaks_are(browser, page_of, plain):
    """They may stand above the budget, though no request does."""
    caption = "document.querySelector('#chart + p')?.innerText ?? ''"

    assert "the size before a compaction. It is not sent" in browser.open(page_of(plain)).evaluate(caption)
    assert browser.open(page_of(replayed(tool_session(3)))).evaluate(caption) == ""


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
    assert "characters not in this page]" in text
    assert "messages left out of this page" in text
    assert "of 60,000 requests." in text
    assert page.problems() == []


# --- the page of an inspection ----------------------------------------------------------------------------------------


@browser_tests
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 380])
def test_the_page_of_an_inspection_fits_its_window_and_shows_every_part_of_it(browser, tmp_path, width, dark):
    """A legend stands on the line of its colour, a part of a few tokens is seen, and no word is broken."""
    found = asyncio.run(inspect_rows(tool_session(60, size=800), window=20_000, max_output=1_000))
    found = replace(found, use=replace(found.use, pins=3))
    write_inspection(found, "a recording", tmp_path / "i.html")

    page = browser.open(tmp_path / "i.html", width=width, dark=dark)

    assert (overflow(page), page.problems()) == (0, [])
    widths = "[...document.querySelectorAll('.window rect')].map((each) => each.getBoundingClientRect().width)"
    assert [size > 1 for size in page.evaluate(widths)] == [False, True, True, True, True, True]
    lines = "[...document.querySelectorAll('td.name')].filter((each) => each.textContent === 'summary')"
    assert page.evaluate(f"new Set({lines}.map((each) => each.getBoundingClientRect().height)).size") == 1


def test_the_page_of_an_inspection_shows_what_a_request_shows_of_a_summary_and_the_share_of_its_messages():
    """With the exact values beside the text; a merged summary is measured against its messages."""
    found = asyncio.run(inspect_rows(tool_session(60, size=800), window=6_000, max_output=1_000))

    text = render_inspection(found, "a recording")

    for node in found.tree:
        original, made = found.originals[node.key], node.summary
        assert made is not None
        share = f"{original.values.share:.0%}"
        assert f"{original.tokens:,} → {made.tokens:,} tokens, {share}" in text
        assert escape(node_text(made)) in text
