"""Writes a replay as one self-contained HTML page: JSON data, and a fixed script that shows the data as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from context_summarize._version import __version__
from context_summarize.errors import ReportUnwritable
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import SYSTEM_ROLES, JsonRow
from context_summarize.messages.text import compact_json, render_parts
from context_summarize.providers.offline import OfflineProvider
from context_summarize.redaction.redactor import build_redactor
from context_summarize.replay.result import ReplayResult, RequestLine
from context_summarize.session.snapshot import Snapshot, SummaryNode, ViewOrigin

T = TypeVar("T")
Clean = Callable[[str], str]
"""Removes secrets from a text."""

_MESSAGE_CHARS = 1_000_000
_VIEW_CHARS = 900_000
_SUMMARY_CHARS = 400_000
"""Characters for all texts of a kind together. The page stays below about 3 MB for any session."""
_LIMITS = (100_000, 20_000, 5_000, 2_000, 1_000, 500, 250, 120, 60)
"""Characters for one text, tried in this order."""
_EXCERPT = 2_000
"""Characters of an original message. The page shows it for comparison with its summary; it is not an archive."""
_MESSAGES = 6_000
_VIEW_ROWS = 3_000
_POINTS = 2_000
_FACTS = 20_000
"""Entries that are shown. If there are more, the page leaves out the middle and says so."""


def write_report(result: ReplayResult, path: Path) -> None:
    """Write the page of a replay to a file, in UTF-8. An existing file is replaced.

    Raises:
        ReportUnwritable: the file cannot be written.
    """
    page = render_report(result)
    try:
        path.write_text(page, "utf-8", newline="\n")
    except OSError as error:
        raise ReportUnwritable(f"the report {path} cannot be written: {error.strerror or error}") from None


def render_report(result: ReplayResult) -> str:
    """The page of a replay as HTML. It loads nothing and runs only its own script.

    The page's JSON block is the only place with recorded text, and no text can end that block. The script inserts
    recorded text as text, never as markup.
    """
    folder = files(__package__) / "assets"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = Template((folder / "report.html").read_text("utf-8"))
    return page.substitute(policy=policy, style=style, script=script, data=_json_block(report_data(result)))


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _json_block(data: Any) -> str:
    """JSON without `<`, so that no text ends the block or begins a tag, and without lone surrogates."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    return re.sub("[<\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def report_data(result: ReplayResult) -> dict[str, Any]:
    """The data of the page as JSON values, with secrets removed and long texts shortened."""
    clean: Clean = build_redactor(result.redact) or str
    snapshot = result.snapshot or Snapshot((), (), ())
    numbers = {line.row: number for number, line in enumerate(result.request_lines, 1)}
    boundaries = [{**asdict(line), "request": numbers.get(line.row, 0)} for line in result.boundaries]
    return {
        "version": __version__,
        "source": result.source,
        "provider": result.provider,
        "offline": result.provider == OfflineProvider.name,
        "settings": {key: compact_json(value) for key, value in result.settings.items()},
        "redacted": bool(result.redact),
        "window": result.window,
        "budget": result.budget,
        "threshold": result.threshold_tokens,
        "target": result.target_tokens,
        "totals": _totals(result),
        "checks": [{**asdict(check), "ok": check.ok, "first": clean(check.first or "")} for check in result.checks],
        "requests": _points(result.request_lines, {line["request"] for line in boundaries}),
        "boundaries": boundaries,
        "nodes": _nodes(snapshot.nodes),
        "messages": _messages(snapshot, clean),
        "view": _view(result, snapshot.origins, clean),
    }


def _totals(result: ReplayResult) -> dict[str, Any]:
    return {
        "messages": result.messages,
        "history_tokens": result.history_tokens,
        "requests": result.requests,
        "largest_view": result.largest_view,
        "stable_share": result.stable_share,
        "provider_calls": result.provider_calls,
        "failed_calls": result.failed_calls,
        "provider_input_tokens": result.provider_input_tokens,
        "provider_output_tokens": result.provider_output_tokens,
        "seconds": result.seconds,
    }


def _points(lines: Sequence[RequestLine], kept: set[int]) -> list[list[int]]:
    """(request, row, tokens) of each request; if there are too many, the smallest and the largest of each range."""
    points = [[number, line.row, line.tokens] for number, line in enumerate(lines, 1)]
    step = -(-len(points) // (_POINTS // 2))
    if step <= 2:
        return points
    shown = {1, len(points), *kept}
    for at in range(0, len(points), step):
        run = sorted(points[at : at + step], key=lambda point: point[2])
        shown |= {run[0][0], run[-1][0]}
    return [point for point in points if point[0] in shown]


def _nodes(nodes: Sequence[SummaryNode]) -> list[dict[str, Any]]:
    """The tree, with a number for each node of the page."""
    found = list(_walk(nodes))
    limit = _limit([len(node.summary.text) for node in found if node.summary], _SUMMARY_CHARS)
    facts = max(5, _FACTS // max(1, len(found)))
    numbers = iter(range(len(found)))
    return [_node(node, limit, facts, numbers) for node in nodes]


def _walk(nodes: Sequence[SummaryNode]) -> Iterator[SummaryNode]:
    for node in nodes:
        yield node
        yield from _walk(node.children)


def _node(node: SummaryNode, limit: int, facts: int, numbers: Iterator[int]) -> dict[str, Any]:
    summary = node.summary
    told: dict[str, Any] = {
        "id": next(numbers),
        "key": node.key,
        "level": node.level,
        "first": node.first,
        "last": node.last,
        "rest": node.rest,
        "kept": summary is not None,
    }
    if summary is not None:
        told |= {
            "text": _cut(summary.text, limit),
            "directives": [_cut(directive, limit) for directive in summary.directives],
            "ledger": [[fact.kind, _cut(fact.value, limit), fact.count] for fact in summary.ledger[:facts]],
            "facts_left_out": max(0, len(summary.ledger) - facts),
            "tokens": summary.tokens,
            "source_tokens": summary.source_tokens,
            "coverage": summary.coverage,
            "fallback": summary.fallback,
            "writer": " · ".join(dict.fromkeys(part for part in (summary.provider, summary.model) if part)),
        }
    return {**told, "children": [_node(child, limit, facts, numbers) for child in node.children]}


def _messages(snapshot: Snapshot, clean: Clean) -> list[list[Any]]:
    """[number, role, tool, text, characters left out] of the messages that summaries replace."""
    rows = snapshot.messages
    leaves = [node for node in _walk(snapshot.nodes) if not node.children]
    if len(rows) > _MESSAGES:
        most = max(2, _MESSAGES // max(1, len(leaves)))
        rows = tuple(row for leaf in leaves for row in _ends(rows[leaf.first - 1 : leaf.last], most))
    texts = [clean(row.text) for row in rows]
    limit = min(_EXCERPT, _limit([len(text) for text in texts], _MESSAGE_CHARS))
    return [
        [row.number, row.role, clean(row.name or ""), text[:limit], max(0, len(text) - limit)]
        for row, text in zip(rows, texts, strict=True)
    ]


def _view(result: ReplayResult, origins: Sequence[ViewOrigin], clean: Clean) -> list[dict[str, Any]]:
    """The rows of the last view: kind, origin and texts of each."""
    names: dict[str, str] = {}
    rows = []
    for at, (row, size) in enumerate(zip(result.last_view, result.last_sizes, strict=True), 1):
        origin = origins[at - 1] if origins else ViewOrigin()
        parts = [(kind, clean(name), clean(text)) for kind, name, text in _parts(row, names)]
        rows.append((at, row, size, origin, parts))
    rows = _ends(rows, _VIEW_ROWS)
    limit = _limit([len(text) for *_, parts in rows for _, _, text in parts], _VIEW_CHARS)
    return [
        {
            "at": at,
            "role": row["role"],
            "kind": _kind(row, origin),
            "tokens": size,
            "row": origin.row,
            "whole_tokens": origin.whole_tokens,
            "span": (row.get("metadata") or {}).get("messages") if origin.key else None,
            "parts": [[kind, name, _cut(text, limit)] for kind, name, text in parts],
        }
        for at, row, size, origin, parts in rows
    ]


def _kind(row: JsonRow, origin: ViewOrigin) -> str:
    if origin.key:
        return "summary"
    if origin.whole_tokens:
        return "shortened"
    return "system" if row["role"] in SYSTEM_ROLES else "verbatim"


def _parts(row: JsonRow, names: dict[str, str]) -> list[tuple[str, str, str]]:
    """(kind, tool, text) of each part of a row: text, call or result. `names` collects the calls seen so far."""
    analysed = analyse(row)
    parts = render_parts(analysed, {call_id: names.get(call_id, "") for call_id in analysed.result_ids}, ())
    texts = parts[: len(parts) - len(analysed.calls)]
    tool = names.get(analysed.result_ids[0], "") if analysed.role == "tool" else ""
    said = [("result", tool, text) if is_result else ("text", "", text) for is_result, text in texts]
    names.update({call.id: call.name for call in analysed.calls})
    return said + [("call", call.name, compact_json(call.arguments)) for call in analysed.calls]


def _limit(lengths: Sequence[int], most: int) -> int:
    """Characters for each text, so that all texts together keep at most about `most`."""
    fits = (limit for limit in _LIMITS if sum(min(length, limit) for length in lengths) <= most)
    return next(fits, _LIMITS[-1])


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [… {len(text) - limit:,} characters not in this page]"


def _ends(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items: one third from the start, two thirds from the end."""
    return list(items) if len(items) <= most else [*items[: most // 3], *items[len(items) - (most - most // 3) :]]
