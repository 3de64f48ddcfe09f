"""Writes a replay as one HTML page that runs and loads nothing: sizes, compactions, and summaries."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from xml.etree.ElementTree import Element, tostring

from context_summarize.errors import CommandError
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import build_redactor
from context_summarize.replay.chart import chart, element
from context_summarize.replay.result import Compaction, ReplayResult, figures, row_text
from context_summarize.transcript.marks import counted

DISTRIBUTION = "amplifier-module-context-summarize"
_CHARS = 50_000
"""Most characters of a text. The page says how much is left out."""
_ABOUT_SIZES = "A request only grows at its end, until a compaction replaces its older part with summaries."
_CAPTION = (
    "Tokens of the messages so far (history), of each request, and of what a request may hold (budget). A dot is a "
    "compaction, and leads to it."
)
_ABOUT_VALUES = (
    "An exact value is a name in a call, or a name or figure in the user's words. It is kept if any row of the request "
    "holds it: a summary, the thread, or a message that is shown whole. Any other is in the history, where recall "
    "finds it."
)


def write_page(result: ReplayResult, path: Path, title: str) -> None:
    """Writes the page of a replay of the recording `title`; raises CommandError if the file cannot be written."""
    try:
        path.write_text(render_page(result, title), encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(f"the report {path} cannot be written: {error.strerror or error}") from None


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
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
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
    section = element("section", element("h2", "Compactions"), element("p", _ABOUT_VALUES))
    if not result.compactions:
        section.append(element("p", "There was none: no request became large enough.", class_="quiet"))
    before: Sequence[JsonRow] = ()
    for number, line in enumerate(result.compactions, 1):
        section.append(_compaction(number, line, before, clean))
        before = line.made_rows
    return section


def _compaction(number: int, line: Compaction, before: Sequence[JsonRow], clean: Callable[[str], str]) -> Element:
    """Returns one compaction: its figures, and the new rows of the module; `before` are its rows until then."""
    where = f"message {line.message:,}" if line.message else f"row {line.row:,}"
    size = f"{line.before_tokens:,} → {line.after_tokens:,} tokens"
    opened = element(
        "details",
        element("summary", element("b", f"{number} "), f"before {where} ", element("span", size)),
        class_="compaction",
        id=f"compaction-{number}",
    )
    code = counted(line.fallbacks, "fallback summary", "fallback summaries")
    made = f"{counted(line.segments, 'segment')} summarised, {line.merged} merged, {code}"
    done = f"{made}, {counted(line.shortened, 'message')} shortened, waited {line.wait_ms:,} ms."
    kept = f"Of {line.values_kept + line.values_lost:,} exact values {line.values_kept:,} are kept."
    opened.append(element("p", f"{done} Why: {line.reason.replace('_', ' ')}. {kept}", class_="quiet"))
    stay = []
    for row in line.made_rows:
        text = clean(row_text(row))
        span = row["metadata"].get("messages")
        if row in before:
            stay.append(f"{span[0]:,} to {span[1]:,}" if span else "thread")
        elif span:
            level = row["metadata"].get("level")
            merged = f", merged (level {level})" if level else ""
            opened.append(_opened(f"Messages {span[0]:,} to {span[1]:,}{merged}", text))
        else:
            opened.append(_opened("What code adds to the summaries", text))
    if stay:
        opened.append(element("p", f"Shown as before: {', '.join(stay)}.", class_="quiet"))
    return opened


def _opened(name: str, text: str) -> Element:
    """Returns a text that its name opens."""
    left_out = len(text) - _CHARS
    shown = text if left_out <= 0 else f"{text[:_CHARS]} [… {left_out:,} characters are left out]"
    return element("details", element("summary", element("b", name)), element("pre", shown), class_="made")
