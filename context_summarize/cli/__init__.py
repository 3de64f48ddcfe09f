"""The command line, a file a command."""

from context_summarize.cli.main import main

__all__ = ["main"]
