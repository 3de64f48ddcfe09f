"""Output for every command: consoles, tables, JSON, log lines, a progress bar, and errors with their exit status."""

from __future__ import annotations

import json
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from context_summarize.errors import ContextSummarizeError

INTERRUPTED = 130
WIDTH = 100
"""Most terminal columns that a sentence uses."""
_NAME = 20
"""Characters of a file name beside a progress bar."""
_WARNINGS = 5
"""Log lines that are shown. A provider that is down causes the same line for every summary."""


class Refused(click.ClickException):
    """The command cannot do what was asked; one line says why."""

    exit_code = 2

    def format_message(self) -> str:
        """The message on one line, even if a file name or a provider's error brings line ends into it."""
        return one_line(self.message)


class _Out(Console):
    """A console that lets the command handle a broken pipe; rich alone would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout() -> Console:
    """Where results go."""
    return _Out(highlight=False)


def stderr() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False)


def plain(text: str) -> str:
    """The text without control characters: recorded text must not control the reader's terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def one_line(text: str) -> str:
    """The text without control characters and line ends."""
    return plain(" ".join(text.split()))


@contextmanager
def guarded() -> Iterator[None]:
    """Turns our errors into one line and exit status 2, and Ctrl-C into one line and exit status 130."""
    try:
        yield
    except ContextSummarizeError as error:
        raise Refused(str(error)) from error
    except (KeyboardInterrupt, click.Abort) as error:
        asked = isinstance(error, click.Abort)  # a prompt leaves the cursor on its line
        stderr().print("\nInterrupted." if asked else "Interrupted.")
        click.get_current_context().exit(INTERRUPTED)


@contextmanager
def printing() -> Iterator[Console]:
    """Prints a result: a closed pipe (`| head`) is not an error, a full disk is one line."""
    try:
        yield stdout()
        sys.stdout.flush()
    except OSError as error:
        # Buffered output would fail again when the interpreter closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise Refused(f"the result cannot be written: {error.strerror or error}") from error


def print_json(value: Any) -> None:
    """Print one JSON document and nothing else, in ASCII, which every terminal and pipe can carry."""
    with printing():
        sys.stdout.write(json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n")


def notes(texts: Iterable[str]) -> None:
    """Lines on stderr that say what was mended or chosen for the user."""
    for text in texts:
        stderr().print(Text(one_line(f"note: {text}"), style="yellow"), soft_wrap=True)


@contextmanager
def working(verb: str, name: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar and log lines on stderr; no bar if stderr is not a terminal."""
    err = stderr()
    shown = f"{verb} {plain(name)[:_NAME]}" if err.width >= 80 else verb
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn("compactions: {task.fields[made]}"),
        TimeElapsedColumn(),
    )
    with _log_lines(err), Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(shown, total=total, made=0)
        yield lambda rows, boundaries: bar.update(task, completed=rows, made=boundaries)


class _LogLines(logging.Handler):
    """Prints the first few warnings, one line each."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console
        self.seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.seen += 1
        if self.seen <= _WARNINGS:
            line = textwrap.shorten(one_line(record.getMessage()), 400)
            self._console.print(Text(f"{record.levelname.lower()}: {line}", style="yellow"), soft_wrap=True)


@contextmanager
def _log_lines(err: Console) -> Iterator[None]:
    handler, root = _LogLines(err), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        if handler.seen > _WARNINGS:
            err.print(f"({handler.seen - _WARNINGS} more warnings)", style="yellow")


def sentence(out: Console, text: str) -> None:
    """A paragraph."""
    out.print(Text(text), width=min(out.width, WIDTH))


def heading(out: Console, title: str, about: str) -> None:
    """A title, and one paragraph that describes what follows."""
    out.print()
    out.print(Text(title, style="bold"))
    out.print(Text(about, style="dim"), width=min(out.width, WIDTH))
    out.print()


def table() -> Table:
    """A table with a line below its header."""
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")


def facts(lines: Sequence[tuple[str, str, str]]) -> Table:
    """A table of (what, figure, remark), without a header."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", style="bold", no_wrap=True)
    grid.add_column(style="dim")
    for line in lines:
        grid.add_row(*map(Text, line))
    return grid


def legend(meanings: Sequence[tuple[str, str]]) -> Table:
    """The meaning of each column of a table."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(style="dim", max_width=WIDTH - 10)
    for title, meaning in meanings:
        grid.add_row(title, meaning)
    return grid
