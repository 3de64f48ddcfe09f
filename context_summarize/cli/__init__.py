"""The command `context-summarize`, for work outside a session. A file has the commands for one kind of thing."""

from __future__ import annotations

import sys

import click

from context_summarize.cli.cache import cache_group
from context_summarize.cli.common import Commands
from context_summarize.cli.exam import exam_command
from context_summarize.cli.prompts import prompts_group
from context_summarize.cli.recordings import inspect_command, replay_command
from context_summarize.replay.page import DISTRIBUTION

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


for command in (cache_group, exam_command, inspect_command, prompts_group, replay_command):
    main.add_command(command)
