"""What `context-summarize replay` prints: a result as text, or as the `--json` object."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from context_summarize.cli.terminal import WIDTH, facts, heading, legend, plain, sentence, table
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.messages.text import render_parts
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.comparison import smaller_window
from context_summarize.replay.result import ReplayResult
from context_summarize.transcript.wording import counted

_LINES = {False: 3, True: 6}
"""Lines that `--show-view` prints of a row's text, and of a summary's text. Calls get further lines."""
_FIGURES = (
    "provider",
    "window",
    "budget",
    "messages",
    "history_tokens",
    "requests",
    "largest_view",
    "stable_share",
    "provider_calls",
    "failed_calls",
    "failed_summaries",
    "unused_summaries",
    "provider_input_tokens",
    "provider_output_tokens",
    "seconds",
)


def as_data(result: ReplayResult, *, show_view: bool) -> dict[str, Any]:
    """A replay as the object that `--json` prints."""
    data = {"file": result.source, **{key: getattr(result, key) for key in _FIGURES}, "ok": result.failed is None}
    data["boundaries"] = [asdict(line) for line in result.boundaries]
    data["checks"] = [{**asdict(check), "ok": check.ok} for check in result.checks]
    return {**data, "last_view": result.last_view} if show_view else data


_ROLE_STYLES = {
    "system": "cyan",
    "developer": "cyan",
    "user": "bold green",
    "assistant": "bold blue",
    "tool": "yellow",
    "function": "yellow",
}
_REASONS = {"threshold": "filling", "must_fit": "must fit", "manual": "asked"}
_COLUMNS = {
    "Message": "the assistant message that answers the request",
    "Before → after": "tokens of the request",
    "Segments": "segments that were summarised; 0: only rows were shortened or summaries merged",
    "Merged": "new summaries, each made from several older ones",
    "Cached": "summaries that were stored already and needed no call",
    "Fallbacks": "fallback summaries, written by code because the provider gave none",
    "Waited": "milliseconds that the request waited for its summaries",
    "Why": "filling: the request passed the threshold; must fit: it would not fit the budget",
}
NO_ASSISTANT = (
    "the recording holds no assistant message, and a request is made before each of them. Record a session with the "
    "agent's answers."
)
_ENOUGH = 1_000
"""Terminal columns that are enough for any table."""
_LESS = ("Cached", "Merged", "Fallbacks", "Waited")
"""Table columns that a narrow terminal leaves out, in this order."""


def print_result(out: Console, result: ReplayResult, *, show_view: bool = False) -> None:
    """Print a replay: what was replayed, the last view if asked for, compactions, totals, checks."""
    out.print()
    through = f"requests of at most {result.budget:,} tokens"
    if result.window is not None:
        through = f"a window of {result.window:,} tokens, {result.budget:,} of them for a request"
    sentence(
        out,
        f"{plain(result.source)}: {counted(result.messages, 'message')}, {result.history_tokens:,} tokens in total, "
        f"replayed with {through}.",
    )
    sentence(out, _who(result))
    if show_view and result.last_view:
        heading(out, "Last request", "The last request of the session. ◆ marks a summary of older messages.")
        out.print(_view_table(result.last_view, out.width))
    heading(
        out,
        "Compactions",
        "Each of these requests had passed the threshold or the budget (Why). Summaries then replaced older messages. "
        "Between two compactions a request only grows at its end.",
    )
    if result.boundaries:
        _print_compactions(out, result)
    else:
        sentence(out, _why_none(result))
    heading(out, "Totals", "The whole session. An agent makes one request for each assistant message.")
    out.print(facts(_totals(result)))
    heading(out, "Checks", "What must always hold. If a check fails, the command exits with 1.")
    out.print(_check_table(result))


def print_verdict(out: Console, result: ReplayResult, page: Path) -> None:
    """Print one paragraph: where the report is, and what it tells."""
    what = "All checks passed." if result.failed is None else "A check failed."
    found = (
        f"{counted(result.requests, 'request')}, {counted(len(result.boundaries), 'compaction')}, "
        f"{counted(result.provider_calls, 'call')} for summaries"
    )
    sentence(out, f"{plain(str(page))}: the report of {plain(result.source)} ({found}). {what}")


def _why_none(result: ReplayResult) -> str:
    if result.requests:
        return f"None: no request became that large. {window_to_see_some(result)}"
    return f"None: {NO_ASSISTANT} `inspect` shows what a request after the last message would hold."


def window_to_see_some(result: ReplayResult) -> str:
    """What would make a replay without a compaction show some."""
    if result.threshold_tokens is None:
        return f"Automatic compactions are off (auto_compact), and every request fits {result.budget:,} tokens."
    text = (
        f"The largest request holds {result.largest_view:,} tokens; a compaction runs from "
        f"{result.threshold_tokens:,} tokens on. "
    )
    window = smaller_window(result)
    return text + (f"Use --window {window} to see some." if window else "The recording is too short to show any.")


def _who(result: ReplayResult) -> str:
    if result.provider == OfflineProvider.name:
        return (
            "Provider: offline. It is not a model: code copies exact words, ids and results from the messages, without "
            "a key or a network. A model writes better summaries (--provider)."
        )
    return f"Provider: {plain(result.provider)}."


def _print_compactions(out: Console, result: ReplayResult) -> None:
    """The table with as many columns as fit the terminal, and the meaning of each column."""
    columns = list(_COLUMNS)
    for less in ("", *_LESS):
        columns = [title for title in columns if title != less]
        made = _compaction_table(result, columns)
        if out.measure(made, options=out.options.update(width=_ENOUGH)).maximum <= out.width:
            break
    out.print(made)
    out.print()
    out.print(legend([(title, _COLUMNS[title]) for title in columns]))


def _compaction_table(result: ReplayResult, columns: Sequence[str]) -> Table:
    made = table()
    for title in columns:
        made.add_column(title, justify="left" if title == "Why" else "right", no_wrap=True)
    for line in result.boundaries:
        cells: dict[str, str | Text] = {
            "Message": "–" if line.message is None else f"{line.message:,}",
            "Before → after": f"{line.before_tokens:,} → {line.after_tokens:,}",
            "Segments": str(line.segments),
            "Merged": str(line.merged),
            "Cached": str(line.from_cache),
            "Fallbacks": Text(str(line.digests), style="yellow" if line.digests else ""),
            "Waited": f"{line.wait_ms:,} ms",
            "Why": _REASONS.get(line.reason, line.reason),
        }
        made.add_row(*(cells[title] for title in columns))
    return made


def _calls_note(result: ReplayResult) -> str:
    notes = [f"for summaries, {result.failed_calls:,} failed"]
    if result.failed_summaries:
        every = "every summary failed" if result.no_summary_made else f"{result.failed_summaries:,} summaries failed"
        notes.append(f"{every}, fallback summaries replace them")
    if result.unused_summaries:
        made = counted(result.made_summaries, "summary", "summaries")
        notes.append(
            f"no request shows {result.unused_summaries:,} of the {made}: "
            "made in advance (prefetch) for a later compaction"
        )
    return "; ".join(notes)


def _totals(result: ReplayResult) -> list[tuple[str, str, str]]:
    used = result.largest_view / result.budget
    return [
        ("Messages", f"{result.messages:,}", f"{result.history_tokens:,} tokens, all kept in the history"),
        ("Requests", f"{result.requests:,}", f"in {result.seconds:.1f} s"),
        ("Largest request", f"{result.largest_view:,}", f"tokens of {result.budget:,} allowed ({used:.0%})"),
        ("Rows sent unchanged", f"{result.stable_share:.1%}", "since the previous request, good for a prompt cache"),
        ("Provider calls", f"{result.provider_calls:,}", _calls_note(result)),
        ("Provider tokens in", f"{result.provider_input_tokens:,}", "read to summarise"),
        ("Provider tokens out", f"{result.provider_output_tokens:,}", "written as summaries"),
    ]


def _check_table(result: ReplayResult) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim")
    for check in result.checks:
        verdict = Text("ok", style="bold green") if check.ok else Text("FAILED", style="bold red")
        unit = check.unit.removesuffix("s") if check.checked == 1 else check.unit
        count = f"{check.checked:,}" if check.ok else f"{check.broken:,} of {check.checked:,}"
        grid.add_row(check.name, verdict, f"{count} {unit}", check.meaning)
    return grid


def _view_table(rows: Sequence[JsonRow], width: int) -> Table:
    """The rows of a view, a few lines for each."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column()
    room = max(20, min(width, WIDTH) - 20)
    for at, row in enumerate(rows, 1):
        marks = row.get("metadata") or {}
        label = Text(row["role"], style=_ROLE_STYLES.get(row["role"], ""))
        summary = marks.get("source") == SOURCE and "messages" in marks
        if summary:
            label = Text("◆ summary\n{} to {}".format(*marks["messages"]), style="bold magenta")
        analysed = analyse(row)
        parts = render_parts(analysed, {call_id: call_id for call_id in analysed.result_ids}, ())
        texts = [text for _, text in parts]
        said, calls = texts[: len(texts) - len(analysed.calls)], texts[len(texts) - len(analysed.calls) :]
        lines = _cut("\n".join(said), room, _LINES[summary])
        lines += [line for text in calls[:3] for line in _cut(text, room, 1)]
        lines += [f"and {len(calls) - 3} more calls"] if len(calls) > 3 else []
        grid.add_row(str(at), label, Text("\n".join(lines)) if lines else Text("(empty)", style="dim"))
    return grid


def _cut(text: str, width: int, most: int) -> list[str]:
    """The first lines of a text."""
    return textwrap.wrap(plain(text[: 2 * most * width]), width, max_lines=most, placeholder=" …")
