"""`context-summarize inspect`: shows a recording's segments and what a window holds of it, without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from context_summarize.cli.inspect_output import as_data, print_inspection
from context_summarize.cli.options import MAX_OUTPUT, SESSION_HELP, WINDOW, json_option, read_config, session_options
from context_summarize.cli.replay import check_page
from context_summarize.cli.terminal import guarded, print_json, printing, working
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.inspection_page import write_inspection
from context_summarize.replay.stored_sessions import open_recording


@click.command("inspect", short_help="Show a recording's segments and what a window holds of it.", epilog=SESSION_HELP)
@session_options()
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE.html", help="Also write it as an HTML page.")
@json_option
def inspect_command(
    session: str,
    prompts: str | None,
    settings: tuple[str, ...],
    html: Path | None,
    as_json: bool,
    **sizes: int | None,
) -> None:
    """Show a recording's segments and what a window holds of it, without a model.

    The command runs the recording through the module as `replay` does, but without prefetch
    (`prefetch_threshold=none`) and with the provider `offline`, which writes summaries by code. It then shows the end
    of the session: the window, what the next compaction would summarise, the segments, the tree of summaries.

    --json prints an object with file, rows, messages, groups, largest_group, pins, tokens, segment_tokens,
    summary_tokens, segments (a list), unsegmented, largest (a list), use (an object), next (an object), requests,
    boundaries, calls, input_tokens, output_tokens and tree (a list of summaries, each with its children). Sizes are in
    tokens; messages are numbered from 1, as in the frames of summaries.

    Exit status: 0, 2 if the session or an option cannot be used, 130 interrupted.
    """
    with guarded():
        if html is not None:
            check_page(html)
        config = read_config(settings, prompts)
        recording = open_recording(session)
        with working("Inspecting", recording.name, len(recording.rows)) as progress:
            found = asyncio.run(
                inspect_rows(
                    recording.rows,
                    window=_given(sizes["window"], WINDOW),
                    max_output=_given(sizes["max_output"], MAX_OUTPUT),
                    config=config,
                    progress=progress,
                )
            )
        if html is not None:
            write_inspection(found, recording.name, html, config.redact)
    if as_json:
        print_json(as_data(recording.name, found))
        return
    with printing() as out:
        print_inspection(out, recording.name, found)


def _given(value: int | None, default: int) -> int:
    return default if value is None else value
