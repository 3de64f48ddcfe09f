"""Writes an inspection as one self-contained HTML page without a script; recorded text is always escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from context_summarize.errors import ReportUnwritable
from context_summarize.redaction.redactor import Redact, build_redactor
from context_summarize.replay.inspected import Inspection
from context_summarize.session.snapshot import SummaryNode

_PARTS = {
    "system": "the host's system rows",
    "pins": "first and newest user message, rows marked critical",
    "summaries": "in place of older messages",
    "verbatim": "the newest messages",
    "free": "left in the budget",
    "reserved": "for the answer and the safety margin",
}
_MOST_SEGMENTS = 2_000
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
        f"{found.rows:,} rows, {found.tokens:,} tokens in total, in a window of {use.window:,} tokens. A request may "
        f"hold {use.budget:,} of them. No model was asked: code wrote the summaries."
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
    rows = [[line.row, line.message or "–", line.role, line.tool or "", f"{line.tokens:,}"] for line in found.largest]
    about = "One long tool result can fill a window faster than many turns."
    yield _section("Largest rows", about, _table(rows, ("Row", "Message", "Role", "Tool", "Tokens")))
    segments = found.segments[-_MOST_SEGMENTS:]
    rows = [
        [at.index, f"{at.first:,} to {at.last:,}", f"{at.tokens:,}", f"{at.summary_tokens:,}", _stands(at.folded)]
        for at in segments
    ]
    left_out = len(found.segments) - len(segments)
    about = "Each segment gets one summary." + (f" The oldest {left_out:,} are left out here." if left_out else "")
    yield _section("Segments", about, _table(rows, ("Segment", "Messages", "Tokens", "Summary", "Shown as")))
    about = "Level, messages, tokens before → after, and the share of exact values that is kept. Open one to read it."
    yield _section("Summaries", about, "".join(_nodes(found.tree, clean)) or "<p>None yet.</p>")


def _stands(folded: bool) -> str:
    return "summary" if folded else "verbatim"


def _section(title: str, about: str, body: str) -> str:
    return f"<section><h2>{_text(title)}</h2><p>{_text(about)}</p>{body}</section>"


def _window(found: Inspection) -> str:
    sizes = {part: max(0, getattr(found.use, part)) for part in _PARTS}
    total, at = sum(sizes.values()) or 1, 0.0
    bars = []
    for part, size in sizes.items():
        width = 1000 * size / total
        bars.append(f'<rect class="{part}" x="{at:.1f}" y="0" width="{width:.1f}" height="10"/>')
        at += width
    told = ", ".join(f"{part} {size:,}" for part, size in sizes.items())
    picture = (
        f'<svg class="window" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{_text(told)} tokens">{"".join(bars)}</svg>'
    )
    rows = "".join(
        f'<tr><td><svg class="key" viewBox="0 0 1 1"><rect class="{part}" width="1" height="1"/></svg>{part}</td>'
        f'<td class="n">{getattr(found.use, part):,}</td><td class="n">{size / found.use.window:.0%}</td>'
        f'<td class="dim">{_text(_PARTS[part])}</td></tr>'
        for part, size in sizes.items()
    )
    return f'{picture}<div class="scroll"><table>{rows}</table></div>'


def _next(found: Inspection) -> list[list[object]]:
    coming, use = found.next, found.use
    when = f"{use.threshold:,} tokens" if use.threshold is not None else "a request that does not fit"
    rows: list[list[object]] = [["Runs at", when], ["Tokens now", f"{use.budget - use.free:,}"]]
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
    head = "".join(f"<th>{_text(title)}</th>" for title in titles)
    lines = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table>{f"<tr>{head}</tr>" if head else ""}{lines}</table></div>'


def _nodes(nodes: Sequence[SummaryNode], clean: Redact | None) -> Iterator[str]:
    room = [_TEXT_CHARS]
    yield from (_node(node, clean or (lambda text: text), room) for node in nodes)


def _node(node: SummaryNode, clean: Callable[[str], Any], room: list[int]) -> str:
    title, inner = f"level {node.level}, messages {node.first:,} to {node.last:,}", "<p>Its text is not kept.</p>"
    if (made := node.summary) is not None:
        title += f", {made.source_tokens:,} → {made.tokens:,} tokens, {made.coverage:.0%}"
        text = clean(made.text)
        room[0] -= len(text)
        inner = f"<pre>{_text(text)}</pre>" if room[0] >= 0 else "<p>Left out: the page is long enough.</p>"
    children = "".join(_node(child, clean, room) for child in node.children)
    return f"<details><summary>{_text(title)}</summary>{inner}{children}</details>"
