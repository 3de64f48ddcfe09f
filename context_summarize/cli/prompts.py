"""`context-summarize prompts`: checks a prompt set, and copies one."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from context_summarize.cli.options import Name
from context_summarize.cli.terminal import guarded, one_line, plain, printing, told
from context_summarize.summaries.prompt_sets import check_set, copy_set, find_warnings
from context_summarize.summaries.prompts import find_set
from context_summarize.transcript.rows import counted


@click.group("prompts", short_help="Check and copy prompt sets.")
def prompts_group() -> None:
    """Check and copy prompt sets.

    A set is a folder with three short files. segment.md and merge.md tell the model how to summarise. frame.md is the
    text around a summary when the agent reads it.
    """


@prompts_group.command("check", short_help="List every problem of a set.")
@click.argument("name", metavar="SET")
def check_command(name: str) -> None:
    """List every problem of a set, one per line. SET is a name or a folder. A warning is no problem.

    Exit status: 0 no problems, 1 problems found, 2 no such set.
    """
    with guarded():
        folder = find_set(name)
        problems = check_set(name)
        warnings = [] if problems else find_warnings(name)
    with printing() as out:
        for text in [problem.text for problem in problems] or [f"{folder}: no problems"]:
            out.print(Text(one_line(text)), soft_wrap=True)
    for warning in warnings:
        told(f"WARNING: {warning}", "yellow")
    if problems:
        told(f"FAILED: {counted(len(problems), 'problem')}", "red")
        click.get_current_context().exit(1)


@prompts_group.command("copy", short_help="Copy a set, so that you can change it.")
@click.argument("name", metavar="SET")
@click.argument("folder", type=Name(), metavar="FOLDER")
def copy_command(name: str, folder: str) -> None:
    """Copy the three files of a set into a new folder, so that you can change them. Nothing is overwritten.

    Then change the files, run `prompts check`, and name the folder in the setting `prompts`.

    Exit status: 0, or 2 if there is no such set or the folder exists.
    """
    with guarded():
        made = copy_set(name, Path(folder))
    with printing() as out:
        out.print(Text(plain(f"{made}: segment.md, merge.md, frame.md")), soft_wrap=True)
