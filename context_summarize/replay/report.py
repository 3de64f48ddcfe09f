"""Writes a replay as one self-contained HTML page: JSON data, and a fixed script that shows the data as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from context_summarize._version import __version__
from context_summarize.errors import ReportUnwritable
from context_summarize.messages.json_text import compact_json
from context_summarize.providers.offline import OfflineProvider
from context_summarize.redaction.redactor import build_redactor
from context_summarize.replay.report_rows import Clean, ReportRows
from context_summarize.replay.report_summaries import ReportSummaries
from context_summarize.replay.result import ReplayResult
from context_summarize.session.snapshot import Snapshot

_SCRIPTS = ("page.js", "chart.js", "rows.js", "compactions.js", "tree.js", "search.js", "start.js")
"""Parts of the page's one script, in this order."""


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

    Recorded text stands in a block of JSON and becomes text of the page: no part of it is read as markup.
    """
    folder = files("context_summarize.replay") / "assets"
    style = (folder / "report.css").read_text("utf-8")
    parts = "".join((folder / name).read_text("utf-8") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{parts}}})();\n'
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
    rows = ReportRows(result, snapshot, clean)
    summaries = ReportSummaries(snapshot, rows, clean)
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
        "totals": {**_totals(result), "numbered": rows.numbered},
        "checks": [{**asdict(check), "ok": check.ok, "first": clean(check.first or "")} for check in result.checks],
        "messages": rows.messages(),
        "rows": rows.rows(),
        "requests": rows.requests(),
        "compactions": rows.compactions(),
        "nodes": summaries.nodes(),
        "values": summaries.values(),
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
