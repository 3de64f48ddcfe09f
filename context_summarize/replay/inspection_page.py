"""Writes an inspection as one self-contained HTML page without a script; recorded text is always escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from context_summarize.core.frames import node_text
from context_summarize.errors import ReportUnwritable
from context_summarize.redaction.redactor import Redact, build_redactor
from context_summarize.replay.inspected import Inspection, Original, SegmentLine, told_when
from context_summarize.replay.kept_values import all_nodes
from context_summarize.session.snapshot import SummaryNode
from context_summarize.transcript.wording import counted

_PARTS = {
    "system": "the host's system rows",
    "pins": "first and newest user message, rows marked critical",
    "summaries": "in place of older messages",
    "verbatim": "the newest messages",
    "free": "left in the budget",
    "reserved": "for the answer and the safety margin",
}
_MOST_SEGMENTS = 2_000
_LEAST = 200
"""A part of the window is drawn with at least this fraction of the bar, so that it can be seen."""
_TEXT_CHARS = 1_000_000
"""Characters of all summaries together; texts after them are left out, and the page says so."""
_NOT_SHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def write_inspection(found: Inspection, name: str, path: Path, redact: bool | tuple[str, ...] = True) -> None:
    """Write the page to a file, in UTF-8. An existing file is replaced.

    Args:
        name: what the page calls the recording.
        redact: the setting of that name.

    Raises:
        ReportUnwritable: the file cannot be written.
    """
    page = render_inspection(found, name, redact)
    try:
        path.write_text(page, "utf-8", newline="\n")
    except OSError as error:
        raise ReportUnwritable(f"the page {path} cannot be written: {error.strerror or error}") from None


def render_inspection(found: Inspection, name: str, redact: bool | tuple[str, ...] = True) -> str:
    """The page as HTML. It loads nothing and runs nothing."""
    folder = files(__package__) / "assets"
    style = (folder / "inspection.css").read_text("utf-8")
    policy = f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
    use = found.use
    lead = (
        f"{counted(found.rows, 'row')}, {found.tokens:,} tokens in total, in a window of "
        f"{use.window:,} tokens. A request may hold {use.budget:,} of them. No model was asked: code wrote the "
        "summaries."
    )
    page = Template((folder / "inspection.html").read_text("utf-8"))
    body = "\n".join(_sections(found, build_redactor(redact)))
    return page.substitute(policy=policy, style=style, title=_text(name), lead=_text(lead), body=body)


def _text(value: object) -> str:
    """A value as text that is safe at any place of the page."""
    return escape(_NOT_SHOWN.sub("\N{REPLACEMENT CHARACTER}", str(value)))


def _sections(found: Inspection, clean: Redact | None) -> Iterator[str]:
    yield _section("Window", "What the next request after the recording would hold.", _window(found))
    yield _section("Next compaction", "What it would do with what is known now.", _table(_next(found)))
    rows = [
        [f"{line.row:,}", f"{line.message:,}" if line.message else "–", f"{line.tokens:,}", line.role, line.tool or ""]
        for line in found.largest
    ]
    about = "One long tool result can fill a window faster than many turns."
    yield _section("Largest rows", about, _table(rows, ("#Row", "#Message", "#Tokens", "Role", "Tool")))
    left_out = len(found.segments) - _MOST_SEGMENTS
    about = "Each segment gets one summary. Sizes are in tokens."
    about += f" The oldest {left_out:,} are left out here." if left_out > 0 else ""
    rows = [_segment(line) for line in found.segments[-_MOST_SEGMENTS:]]
    yield _section("Segments", about, _table(rows, ("#Index", "#Messages", "#Tokens", "#Summary", "Shown as")))
    about = (
        "Level, messages, their tokens → tokens of the summary, and how many of the exact values (ids, amounts, paths) "
        "of these messages it holds; a merged summary is measured against its messages too. Open one to read it."
    )
    yield _section("Summaries", about, "".join(_nodes(found, clean)) or "<p>None yet.</p>")


def _segment(line: SegmentLine) -> list[str]:
    span, stands = f"{line.first:,} to {line.last:,}", "summary" if line.folded else "verbatim"
    return [f"{line.index:,}", span, f"{line.tokens:,}", f"{line.summary_tokens:,}", stands]


def _section(title: str, about: str, body: str) -> str:
    return f"<section><h2>{_text(title)}</h2><p>{_text(about)}</p>{body}</section>"


def _window(found: Inspection) -> str:
    sizes = {part: max(0, getattr(found.use, part)) for part in _PARTS}
    shown = {part: max(size, sum(sizes.values()) / _LEAST) if size else 0 for part, size in sizes.items()}
    total, at = sum(shown.values()) or 1, 0.0
    bars = []
    for part, size in shown.items():
        width = 1000 * size / total
        bars.append(f'<rect class="{part}" x="{at:.1f}" y="0" width="{width:.1f}" height="10"/>')
        at += width
    told = ", ".join(f"{part} {size:,}" for part, size in sizes.items())
    picture = (
        f'<svg class="window" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{_text(told)} tokens">{"".join(bars)}</svg>'
    )
    rows = "".join(
        f'<tr><td class="part"><svg class="key" viewBox="0 0 1 1"><rect class="{part}" width="1" height="1"/></svg>'
        f"{part}</td>"
        f'<td class="n">{getattr(found.use, part):,}</td><td class="n">{size / found.use.window:.0%}</td>'
        f'<td class="dim">{_text(_PARTS[part])}</td></tr>'
        for part, size in sizes.items()
    )
    return f'{picture}<div class="scroll"><table>{rows}</table></div>'


def _next(found: Inspection) -> list[list[object]]:
    coming = found.next
    rows: list[list[object]] = [["When", f"{found.used:,} {told_when(found)}"]]
    if coming.first is not None:
        rows.append(["Messages summarised", f"{coming.first:,} to {coming.last:,}"])
    rows += [
        ["New merged summaries", f"{coming.merged:,}"],
        ["Long rows shortened", f"{coming.shortened:,}"],
        ["Tokens freed", f"{coming.freed:,}"],
        ["Provider calls", f"{coming.calls:,} (about {coming.input_tokens:,} in, {coming.output_tokens:,} out)"],
    ]
    return rows


def _table(rows: Iterable[Sequence[object]], titles: Sequence[str] = ()) -> str:
    """A table. Columns whose titles begin with # hold numbers."""
    styles = ["n" if title.startswith("#") else "name" for title in titles] or ["part", "name"]
    head = "".join(_cell("th", style, title.lstrip("#")) for style, title in zip(styles, titles, strict=False))
    lines = "".join(f"<tr>{''.join(map(_cell, ['td'] * len(row), styles, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table>{f"<tr>{head}</tr>" if head else ""}{lines}</table></div>'


def _cell(tag: str, style: str, value: object) -> str:
    return f'<{tag} class="{style}">{_text(value)}</{tag}>'


def _nodes(found: Inspection, clean: Redact | None) -> Iterator[str]:
    texts = _texts(found.tree, clean or str)
    yield from (_node(node, found.originals, texts) for node in found.tree)


def _texts(nodes: Sequence[SummaryNode], clean: Redact) -> dict[str, str]:
    """What a request shows of each summary, by its key, as far as the page has room for it."""
    room = _TEXT_CHARS
    found: dict[str, str] = {}
    for node in all_nodes(nodes):
        if node.summary is not None:
            text = clean(node_text(node.summary))
            room -= len(text)
            found |= {node.key: text} if room >= 0 else {}
    return found


def _node(node: SummaryNode, originals: Mapping[str, Original], texts: Mapping[str, str]) -> str:
    title, inner = f"level {node.level}, messages {node.first:,} to {node.last:,}", "<p>Its text is not kept.</p>"
    if node.summary is not None:
        original, text = originals[node.key], texts.get(node.key)
        title += f", {original.tokens:,} → {node.summary.tokens:,} tokens, {original.values.share:.0%}"
        title += ", fallback" * node.summary.fallback + ", rest" * node.rest
        inner = "<p>Left out: the page is long enough.</p>" if text is None else f"<pre>{_text(text)}</pre>"
    children = "".join(_node(child, originals, texts) for child in node.children)
    return f"<details><summary>{_text(title)}</summary>{inner}{children}</details>"
