"""`context-summarize inspect`: how a recording is cut and what a window holds of it, without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from context_summarize.cli.inspect_output import as_data, print_inspection
from context_summarize.cli.options import MAX_OUTPUT, WINDOW, json_option, read_config, session_options
from context_summarize.cli.terminal import guarded, print_json, printing, working
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.session_files import read_session


@click.command("inspect", short_help="Show how a recording is cut and what a window holds of it.")
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
    """Show how a recording is cut and what a window holds of it, without a model.

    FILE.jsonl holds one message a line, as Amplifier's loops store them. The recording is run through the module as
    `replay` does, but with nothing made ahead (`prefetch_threshold=none`) and with summaries that code writes (the
    provider `offline`). What the session holds at its end is shown: the window, what the next boundary would fold,
    the segments, the tree of summaries.

    --json prints an object with file, rows, messages, groups, largest_group, pins, tokens, segment_tokens,
    summary_tokens, segments (a list), unsegmented, largest (a list), use (an object), next (an object), requests,
    boundaries, calls, input_tokens, output_tokens and tree (a list of summaries, each with its children). Sizes are in
    tokens; messages are numbered from 1 as the frames of summaries number them.

    Exit status: 0, 2 the file or an option cannot be used, 130 interrupted.
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
