"""What `context-summarize replay` prints: a result as text."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from context_summarize.cli.terminal import facts, heading, plain, sentence, table
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay import Check, Compaction, ReplayResult, figures, row_text
from context_summarize.transcript.rows import counted

_OFFLINE = (
    "Provider: offline. It is not a model: code copies exact words, ids and results from the messages, without a key "
    "or a network. A model writes better summaries (--base-url, --provider)."
)
_COMPACTIONS = (
    "Each of these requests had passed the threshold (filling) or would not fit the budget (must fit). Summaries then "
    "replaced older messages. Message: the assistant message that answers the request. Segments: runs of messages that "
    "were summarised. Merged: new summaries, each made from several older ones. Cached: summaries that needed no call. "
    "Fallbacks: summaries by code, because the provider gave none. Waited: how long the request waited for summaries."
)
_COLUMNS = ("Message", "Before → after", "Segments", "Merged", "Cached", "Fallbacks", "Waited", "Why")


def print_result(out: Console, name: str, result: ReplayResult, *, show_view: bool) -> None:
    """Print a replay: what was replayed, the last view if asked for, compactions, totals, checks."""
    through = f"requests of at most {result.budget:,} tokens"
    if result.window is not None:
        through = f"a window of {result.window:,} tokens, {result.budget:,} of them for a request"
    messages = counted(len(result.rows), "message")
    sentence(out, f"\n{name}: {messages}, {result.history_tokens:,} tokens in total, replayed with {through}.")
    sentence(out, _OFFLINE if result.provider == OfflineProvider.name else f"Provider: {result.provider}.")
    if show_view and result.last_view:
        heading(out, "Last request", "The last request of the session, row by row.")
        for at, row in enumerate(result.last_view, 1):
            out.print(Text(f"── {at} {row['role']} ──", style="bold"))
            out.print(Text(plain(row_text(row))), soft_wrap=True)
    heading(out, "Compactions", _COMPACTIONS)
    if result.compactions:
        out.print(table(_COLUMNS, map(_cells, result.compactions)))
    elif not result.requests:
        sentence(out, "None. There was no request: each message of the role assistant answers one.")
    else:
        largest = f"The largest of {counted(len(result.requests), 'request')} holds {result.largest_view:,} tokens."
        sentence(out, f"None. {largest} A smaller --window shows some.")
    heading(out, "Totals", "The whole session. An agent makes one request for each assistant message.")
    out.print(facts(figures(result)))
    heading(out, "Checks", "What must always hold. If a check fails, the command exits with 1.")
    out.print(facts(map(_verdict, result.checks)))


def _cells(line: Compaction) -> tuple[object, ...]:
    size = f"{line.before_tokens:,} → {line.after_tokens:,}"
    counts = (line.segments, line.merged, line.from_cache, line.fallbacks)
    return (line.message or "–", size, *counts, f"{line.wait_ms:,} ms", line.why)


def _verdict(check: Check) -> tuple[str, str, str]:
    unit = check.unit.removesuffix("s") if check.checked == 1 else check.unit
    count = f"ok  {check.checked:,}" if check.ok else f"FAILED  {check.broken:,} of {check.checked:,}"
    return check.name, f"{count} {unit}", check.meaning
