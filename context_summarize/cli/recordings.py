"""`context-summarize replay` and `inspect`: run a recorded session through the module, or show its contents."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from context_summarize.cli.common import (
    Progressing,
    check_output,
    heading,
    plain,
    progressing,
    read_config,
    remark,
    sentence,
    table,
)
from context_summarize.cli.providers import opened, prices_for, provider_options
from context_summarize.config import Config
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay.page import render_page
from context_summarize.replay.player import replay
from context_summarize.replay.recordings import Recording, open_recording
from context_summarize.replay.result import Compaction, ReplayResult, figures, message_numbers, named, row_text
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure
from context_summarize.transcript.marks import counted

SESSION_HELP = (
    "SESSION is a recording: a transcript of Amplifier, a session file of Claude Code or Codex, or messages in "
    "OpenAI's or Anthropic's form, one a line or in a JSON array; or the id of a session that Amplifier has stored, or "
    "the beginning of one; or - for standard input."
)
CONFIG_HELP = "A setting, such as keep_recent=20; may be repeated. VALUE is JSON, else text; `none` means no value."
_OFFLINE = (
    "Provider: offline. It is not a model: code copies words, ids and results from the messages, without a key or a "
    "network. A model writes better summaries (--provider)."
)
_COMPACTIONS = (
    "Each of these requests reached the threshold, or did not fit the budget (must fit), so summaries replaced older "
    "messages. Before: the assistant message that answers the request. Summaries: those that were made, also from "
    "older ones. Failed: summaries that the provider did not write, so that code did. Shorter: messages of which only "
    "the beginning and the end are left. Waited: for summaries."
)
_LISTED = 5
"""Most calls without a result, and most messages, that `inspect` lists."""
_COLUMNS = ("Before", "Tokens", "Summaries", "Failed", "Shorter", "Waited", "Why")


@click.command("replay", short_help="Replay a recorded session and check every request.", epilog=SESSION_HELP)
@click.argument("session", metavar="SESSION")
@provider_options(required=False)
@click.option("--config", "settings", multiple=True, metavar="KEY=VALUE", help=CONFIG_HELP)
@click.option("--show-view", is_flag=True, help="Also print the rows of the last request, as the model reads them.")
@click.option("--html", metavar="FILE.html", help="Also write the replay as an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all figures, and nothing else.")
def replay_command(
    session: str, settings: tuple[str, ...], show_view: bool, html: str | None, as_json: bool, **asked: Any
) -> None:
    """Replay a recorded session and check every request.

    The command adds the messages of SESSION one by one. Before every assistant message it asks the module for the
    request that an agent would send at that point. It sends data only to the provider that writes the summaries.

    Exit status: 0 all checks passed, 1 if a check failed or the output cannot be written, 2 if the session or an
    option cannot be used, 3 if the provider was asked for summaries and every one failed, 130 interrupted.
    """
    if html is not None:
        check_output(Path(html), ".html")
    config = read_config(settings)
    with progressing() as progress:
        recording = opened_recording(session)
        result = asyncio.run(_played(recording.rows, config, progress, **asked))
    if html is not None:
        Path(html).write_text(render_page(result, recording.name), "utf-8", newline="\n")
        remark(f"The report is in {html}; a browser opens it.", "green")
    if as_json:
        view = {"last_view": result.last_view} if show_view else {}
        text = json.dumps({"file": recording.name, **result.as_data(), **view}, indent=2)
        click.echo(text.replace("\x7f", "\\u007f"))  # it must not control the terminal
    else:
        _print(recording.name, result, show_view=show_view)
    if result.problem is not None:
        remark(result.problem, "red")
        click.get_current_context().exit(1 if result.failed else 3)


def opened_recording(session: str) -> Recording:
    """Returns the recording that the argument names; prints what is left out of it on stderr."""
    recording = open_recording(session)
    if recording.left_out:
        remark(f"note: left out of {recording.name}: {recording.left_out}", "yellow")
    return recording


async def _played(rows: Sequence[JsonRow], config: Config, progress: Progressing, **asked: Any) -> ReplayResult:
    """Returns the replay with the provider that the options ask for, and cleans it up."""
    async with opened(**asked) as (name, provider):
        result = await replay(rows, provider, config=config, name=name, progress=progress("Replaying", len(rows)))
    result.prices = prices_for(name, provider)
    return result


def _print(name: str, result: ReplayResult, *, show_view: bool) -> None:
    """Prints a replay: its recording, the last view if wanted, compactions, totals, checks."""
    messages = counted(len(result.rows), "message")
    sizes = f"{result.history_tokens:,} tokens in total, replayed with requests of at most {result.budget:,}"
    sentence(f"\n{name}: {messages}, {sizes}.")
    sentence(_OFFLINE if result.provider == OfflineProvider.name else f"Provider: {result.provider}.")
    if show_view and result.last_view:
        heading("Last request", "Row by row, as the model reads it.")
        for at, row in enumerate(result.last_view, 1):
            click.secho(f"── {at} {row['role']} ──", bold=True)
            click.echo(plain(row_text(row)))
    if result.compactions:
        heading("Compactions", _COMPACTIONS)
        table(_COLUMNS, (_cells(result.numbers[line.row - 1], line) for line in result.compactions))
    elif not result.requests:
        sentence("\nNo request: the recording has no assistant message, so no agent asked for one.")
    else:
        largest = f"The largest of {counted(len(result.requests), 'request')} holds {result.largest_view:,} tokens."
        sentence(f"\nNo compaction. {largest} With a smaller --window there are some.")
    heading("Totals", "The whole session. An agent makes one request for each assistant message.")
    table(("", "", ""), figures(result))
    heading("Checks", "Promises of the module. If one is broken, the command exits with 1.")
    table(("", "", ""), ((check.name, "ok" if check.ok else "FAILED", check.meaning) for check in result.checks))


def _cells(number: int | None, line: Compaction) -> tuple[object, ...]:
    event, size = line.event, f"{line.before:,} → {line.after:,}"
    counts = (event["segments"] + event["merged"], event["fallbacks"], event["shortened"])
    return (number or "", size, *counts, f"{event['wait_ms']:,} ms", event["reason"].replace("_", " "))


@click.command("inspect", short_help="Say what a recording holds, without replaying it.", epilog=SESSION_HELP)
@click.argument("session", metavar="SESSION")
def inspect_command(session: str) -> None:
    """Say what a recording holds, without replaying it: rows, tokens, broken pairs, largest messages.

    Messages are numbered from 1, as in the frames of summaries. No provider is asked, and nothing is written.

    Exit status: 0, 1 if the output cannot be written, 2 if the session cannot be used, 130 interrupted.
    """
    with progressing():
        recording, count = opened_recording(session), TokenCounter().count
        rows, numbers = [*map(analyse, recording.rows)], message_numbers(recording.rows)
        sizes = [measure(row, count) for row in recording.rows]
    messages = counted(sum(row.rendered for row in rows), "message")
    sentence(f"\n{recording.name}: {counted(len(rows), 'row')}, {sum(sizes):,} tokens, {messages} to summarise.")
    results = Counter(known for row in rows for known in row.result_ids)
    # A call of the last row may still get its result.
    calls = [(call, named(numbers, at)) for at, row in enumerate(rows[:-1], 1) for call in row.calls]
    lost = [f"{call.name or 'a call'} in {where}" for call, where in calls if call.id not in results]
    if lost:
        more = ", …" if len(lost) > _LISTED else ""
        sentence(f"{counted(len(lost), 'call')} without a result: {', '.join(lost[:_LISTED])}{more}.")
    tools = {call.id: call.name for call, _ in calls}
    if orphans := sum(number for known, number in results.items() if known not in tools):
        sentence(f"{counted(orphans, 'result')} without a call.")
    heading("Roles", "System and developer rows belong to the host and have no message number.")
    of_role, tokens = Counter(row.role for row in rows), Counter[str]()
    for row, size in zip(rows, sizes, strict=True):
        tokens[row.role] += size
    table(("Role", "Rows", "Tokens"), ((role, number, tokens[role]) for role, number in of_role.items()))
    heading("Largest", "The messages that take the most tokens.")
    largest = sorted(range(len(rows)), key=lambda at: -sizes[at])[:_LISTED]
    tool = [tools.get(next(iter(row.result_ids), ""), "") for row in rows]
    cells = ((numbers[at] or "", sizes[at], rows[at].role, tool[at]) for at in largest)
    table(("Message", "Tokens", "Role", "Tool"), cells)
