"""`context-summarize inspect`: shows a recording's segments and what a window holds of it, without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from context_summarize.cli.inspect_output import as_data, print_inspection
from context_summarize.cli.options import MAX_OUTPUT, WINDOW, json_option, read_config, session_options
from context_summarize.cli.terminal import guarded, print_json, printing, working
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.session_files import read_session


@click.command("inspect", short_help="Show a recording's segments and what a window holds of it.")
@session_options()
@json_option
def inspect_command(
    file: Path,
    window: int | None,
    max_output: int | None,
    prompts: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show a recording's segments and what a window holds of it, without a model.

    FILE.jsonl holds one message per line, as Amplifier's loops store them. The command runs the recording through the
    module as `replay` does, but without prefetch (`prefetch_threshold=none`) and with the provider `offline`, which
    writes summaries by code. It then shows the end of the session: the window, what the next compaction would
    summarise, the segments, the tree of summaries.

    --json prints an object with file, rows, messages, groups, largest_group, pins, tokens, segment_tokens,
    summary_tokens, segments (a list), unsegmented, largest (a list), use (an object), next (an object), requests,
    boundaries, calls, input_tokens, output_tokens and tree (a list of summaries, each with its children). Sizes are in
    tokens; messages are numbered from 1, as in the frames of summaries.

    Exit status: 0, 2 if the file or an option cannot be used, 130 interrupted.
    """
    with guarded():
        config = read_config(settings, prompts)
        rows = read_session(file)
        with working("Inspecting", file.name, len(rows)) as progress:
            found = asyncio.run(
                inspect_rows(
                    rows,
                    window=WINDOW if window is None else window,
                    max_output=MAX_OUTPUT if max_output is None else max_output,
                    config=config,
                    progress=progress,
                )
            )
    if as_json:
        print_json(as_data(file.name, found))
        return
    with printing() as out:
        print_inspection(out, file.name, found)
