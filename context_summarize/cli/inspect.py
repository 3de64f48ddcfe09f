"""`context-summarize inspect`: shows a recording's segments and what a window holds of it, without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from context_summarize.cli.inspect_output import as_data, print_inspection
from context_summarize.cli.options import (
    MAX_OUTPUT,
    SESSION_HELP,
    WINDOW,
    given,
    json_option,
    lowered_output,
    opened,
    read_config,
    session_options,
)
from context_summarize.cli.replay import check_page
from context_summarize.cli.terminal import guarded, notes, print_json, printing, working
from context_summarize.config import Config
from context_summarize.replay.inspected import Inspection
from context_summarize.replay.inspection import inspect_rows
from context_summarize.replay.inspection_page import write_inspection
from context_summarize.replay.session_files import Recording
from context_summarize.session.host import Window


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
    tokens; messages are numbered from 1, as in the frames of summaries. In the tree, coverage counts the exact values
    of what a summary was made from, which for a merged one are other summaries; values and values_kept count those of
    its messages.

    Exit status: 0, 2 if the session or an option cannot be used, 130 interrupted.
    """
    with guarded():
        if html is not None:
            check_page(html)
        config = read_config(settings, prompts)
        recording = opened(session)
        found = _inspected(recording, config, **sizes)
        if html is not None:
            write_inspection(found, recording.name, html, config.redact)
    if as_json:
        print_json(as_data(recording.name, found))
        return
    with printing() as out:
        print_inspection(out, recording.name, found)


def _inspected(recording: Recording, config: Config, *, window: int | None, max_output: int | None) -> Inspection:
    sizes = Window(given(window, WINDOW), given(max_output, MAX_OUTPUT))
    notes(lowered_output(sizes, config.safety_margin))
    with working("Inspecting", recording.name, len(recording.rows)) as progress:
        return asyncio.run(
            inspect_rows(
                recording.rows, window=sizes.context, max_output=sizes.output, config=config, progress=progress
            )
        )
