"""`context-summarize inspect`: says what a recording holds and how it would be cut, without replaying it."""

from __future__ import annotations

import asyncio

from rich.console import Console

from context_summarize.cli.common import (
    MAX_OUTPUT,
    WINDOW,
    guarded,
    heading,
    json_option,
    opened,
    print_json,
    printing,
    read_config,
    sentence,
    session_command,
    table,
    working,
)
from context_summarize.replay import Inspection, inspect_rows
from context_summarize.session.host import Window
from context_summarize.transcript.rows import counted

_NAMED = 3
"""Calls without a result that are named."""


@session_command("inspect", "Say what a recording holds, without replaying it.")
@json_option
def inspect_command(
    session: str, settings: tuple[str, ...], window: int | None, max_output: int | None, as_json: bool
) -> None:
    """Say what a recording holds, without replaying it: rows, tokens, broken pairs, largest messages, segments.

    The window decides how long a segment is. A segment is stored if the cache (the setting `cache`, by default the
    file in the user's Amplifier folder) holds its summary.

    --json prints an object with file, rows, messages, tokens, segment_tokens, unanswered_calls (a list),
    orphan_results, roles, largest and segments (lists of objects). Sizes are in tokens; messages are numbered from 1,
    as in the frames of summaries.

    Exit status: 0, 2 if the session or an option cannot be used, 130 interrupted.
    """
    with guarded():
        config = read_config(settings)
        recording = opened(session)
        budget = Window(window or WINDOW, max_output or MAX_OUTPUT).budget(config.safety_margin)
        with working("Inspecting", len(recording.rows)) as progress:
            found = asyncio.run(inspect_rows(recording.rows, budget=budget, config=config, progress=progress))
    if as_json:
        print_json({"file": recording.name, **found.as_data()})
        return
    with printing() as out:
        _print(out, recording.name, found)


def _print(out: Console, name: str, found: Inspection) -> None:
    messages = counted(found.messages, "message")
    sentence(out, f"\n{name}: {counted(found.rows, 'row')}, {found.tokens:,} tokens, {messages} to summarise.")
    sentence(out, "No provider was asked, and no file was written.")
    if calls := found.unanswered_calls:
        more = f" and {len(calls) - _NAMED:,} more" if len(calls) > _NAMED else ""
        sentence(out, f"{counted(len(calls), 'call')} without a result: {', '.join(calls[:_NAMED])}{more}.")
    if found.orphan_results:
        sentence(out, f"{counted(found.orphan_results, 'result')} without a call.")
    about = {
        "roles": "System and developer rows belong to the host and have no message number.",
        "largest": "The messages that take the most tokens.",
        "segments": f"One call summarises a segment, of {found.segment_tokens * 4:,} bytes of text or a bit more. "
        "The table has the tokens that its messages take in a request.",
    }
    for title, (columns, rows) in found.tables.items():
        heading(out, title.capitalize(), about[title])
        out.print(table(columns, rows))
