"""`context-summarize inspect`: says what a recording holds, without replaying it."""

from __future__ import annotations

from dataclasses import asdict

import click

from context_summarize.cli.common import (
    SESSION_HELP,
    guarded,
    heading,
    json_option,
    opened,
    print_json,
    sentence,
    table,
)
from context_summarize.replay import Inspection, inspect_rows
from context_summarize.transcript.rows import counted

_NAMED = 3
"""Calls without a result that are named."""


@click.command("inspect", short_help="Say what a recording holds, without replaying it.", epilog=SESSION_HELP)
@click.argument("session", metavar="SESSION")
@json_option
def inspect_command(session: str, as_json: bool) -> None:
    """Say what a recording holds, without replaying it: rows, tokens, broken pairs, largest messages.

    --json prints an object with file, rows, messages, tokens, unanswered_calls (a list), orphan_results, roles and
    largest (lists of objects). Sizes are in tokens; messages are numbered from 1, as in the frames of summaries.

    Exit status: 0, 2 if the session or an option cannot be used, 130 interrupted.
    """
    with guarded():
        recording = opened(session)
        found = inspect_rows(recording.rows)
    if as_json:
        print_json({"file": recording.name, **asdict(found)})
        return
    _print(recording.name, found)


def _print(name: str, found: Inspection) -> None:
    messages = counted(found.messages, "message")
    sentence(f"\n{name}: {counted(found.rows, 'row')}, {found.tokens:,} tokens, {messages} to summarise.")
    sentence("No provider was asked, and nothing was written.")
    if calls := found.unanswered_calls:
        more = f" and {len(calls) - _NAMED:,} more" if len(calls) > _NAMED else ""
        sentence(f"{counted(len(calls), 'call')} without a result: {', '.join(calls[:_NAMED])}{more}.")
    if found.orphan_results:
        sentence(f"{counted(found.orphan_results, 'result')} without a call.")
    about = {
        "roles": "System and developer rows belong to the host and have no message number.",
        "largest": "The messages that take the most tokens.",
    }
    for title, remark in about.items():
        if rows := getattr(found, title):
            heading(title.capitalize(), remark)
            table([*rows[0]], (row.values() for row in rows))
