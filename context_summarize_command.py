"""The entry point of the command `context-summarize`; everything else is in `context_summarize.cli`."""

import sys


def main() -> None:
    """Loads the command and runs it. Ctrl-C ends it with 130 also while it is loaded, which may take seconds."""
    try:
        from context_summarize.cli import main as command

        command()
    except OSError as error:  # click writes the help itself
        sys.stderr.write(f"Error: {error.strerror or error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
