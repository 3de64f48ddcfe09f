"""The command `context-summarize`, for work outside a session; here is the part of it that looks at prompts."""

from __future__ import annotations

import sys

import click

from context_summarize.cli.common import Commands, plain
from context_summarize.cli.exam import exam_command
from context_summarize.cli.recordings import inspect_command, replay_command
from context_summarize.replay.page import DISTRIBUTION
from context_summarize.summaries.prompts import load_prompts

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=DISTRIBUTION, prog_name="context-summarize")
def main() -> None:
    """Keeps an agent session within its model's window by summarising its older parts.

    This command shows what the module does, outside a session. In a session, Amplifier loads it as the context module
    "context-summarize".
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a recorded row may hold characters that the terminal cannot show


@click.command("prompts", short_help="Check a prompt set, and say where it is.")
@click.argument("name", metavar="SET")
def prompts_command(name: str) -> None:
    """Check a prompt set, and print its folder. SET is a name or a folder.

    A set is a folder with two short files, segment.md and merge.md, which tell the model how to summarise. Copy a set
    to change it.

    Exit status: 0, or 2 if there is no such set, or it has problems; each is named.
    """
    click.echo(plain(str(load_prompts(name).segment.path.parent)))


for command in (exam_command, inspect_command, prompts_command, replay_command):
    main.add_command(command)
