"""How a report behaves in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
    assert f"answered by message {first.message:,}" in page.evaluate(tip)
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
