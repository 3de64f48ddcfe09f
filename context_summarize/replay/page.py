"""Writes a replay as one HTML page that runs and loads nothing: sizes, compactions, and summaries."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from importlib.resources import files
from xml.etree.ElementTree import Element, tostring

from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import build_redactor
from context_summarize.replay.chart import chart, element
from context_summarize.replay.result import Compaction, ReplayResult, figures, named, row_text
from context_summarize.transcript.marks import counted

DISTRIBUTION = "amplifier-module-context-summarize"
_ABOUT_SIZES = "A request only grows at its end, until a compaction replaces its older part with summaries."
_CAPTION = (
    "Tokens of the messages so far (history), of each request, and of what a request may hold (budget). A dot is a "
    "compaction, and leads to it."
)


def render_page(result: ReplayResult, title: str) -> str:
    """Returns the page as HTML. Its texts are redacted like the texts that a summariser reads."""
    style = (files("context_summarize.replay") / "assets" / "page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    clean = build_redactor(result.redact) or str
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{clean(title)} – replay"),
        element("style", style),
    )
    drawn = element("figure", element("div", chart(result), class_="wide"), element("figcaption", _CAPTION))
    sizes = element("section", element("h2", "Size of each request"), element("p", _ABOUT_SIZES), drawn)
    body = element("main", *_header(result, title, clean), sizes, _compactions(result, clean))
    page = element("html", head, element("body", body), lang="en")
    return f"<!doctype html>\n{tostring(page, encoding='unicode', method='html')}\n"


def _header(result: ReplayResult, title: str, clean: Callable[[str], str]) -> Iterator[Element]:
    yield element("p", f"context-summarize {version(DISTRIBUTION)} · replay", class_="quiet")
    yield element("h1", clean(title))
    checks = element("ul", class_="checks")
    for check in result.checks:
        verdict = check.meaning if check.ok else f"FAILED: {clean(check.first or '')}"
        checks.append(element("li", element("b", check.name), f" {verdict}", class_="ok" if check.ok else "failed"))
    yield checks
    listed = element("dl")
    for what, figure, remark in [("Provider", clean(result.provider), "writes the summaries"), *figures(result)]:
        listed.append(element("div", element("dt", what), element("dd", element("b", figure), f" {remark}")))
    yield listed


def _compactions(result: ReplayResult, clean: Callable[[str], str]) -> Element:
    section = element("section", element("h2", "Compactions"))
    if not result.compactions:
        section.append(element("p", "There was none: no request became large enough.", class_="quiet"))
    before: Sequence[JsonRow] = ()
    for number, line in enumerate(result.compactions, 1):
        size = f"{line.before:,} → {line.after:,} tokens"
        summary = element(
            "summary", element("b", f"{number} "), f"before {named(result.numbers, line.row)} ", element("span", size)
        )
        opened = element("details", summary, class_="compaction", id=f"compaction-{number}")
        opened.extend(_compaction(line, before, clean))
        section.append(opened)
        before = line.made_rows
    return section


def _compaction(line: Compaction, before: Sequence[JsonRow], clean: Callable[[str], str]) -> Iterator[Element]:
    """Yields what one compaction did, and the new rows of the module; `before` are its rows until then."""
    event = line.event
    made = f"{counted(event['segments'], 'segment')} summarised, {event['merged']} merged"
    failed = f" {event['fallbacks']} by code, because the provider failed." if event["fallbacks"] else ""
    done = f"{made}, {counted(event['shortened'], 'message')} shortened, waited {event['wait_ms']:,} ms."
    yield element("p", f"{done}{failed} Why: {event['reason'].replace('_', ' ')}.", class_="quiet")
    stay = []
    for row in line.made_rows:
        text = clean(row_text(row))
        span = row["metadata"].get("messages")
        if row in before:
            stay.append(f"{span[0]:,} to {span[1]:,}" if span else "thread")
        elif span:
            level = row["metadata"].get("level")
            merged = f", merged (level {level})" if level else ""
            yield _opened(f"Messages {span[0]:,} to {span[1]:,}{merged}", text)
        else:
            yield _opened("What code adds to the summaries", text)
    if stay:
        yield element("p", f"Shown as before: {', '.join(stay)}.", class_="quiet")


def _opened(name: str, text: str) -> Element:
    """Returns a text that its name opens."""
    return element("details", element("summary", element("b", name)), element("pre", text), class_="made")
