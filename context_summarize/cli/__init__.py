"""The command line: one file for each command."""

from context_summarize.cli.main import main

__all__ = ["main"]
