"""What every command prints with: consoles, tables, JSON, log lines, a progress bar, and how a command ends."""

from __future__ import annotations

import json
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
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
"""Columns that sentences take at most."""
_NAME = 20
"""Characters of a file's name beside a progress bar."""
_WARNINGS = 5
"""Log lines that are shown; a provider that is down says the same thing for every summary."""


class Refused(click.ClickException):
    """What was asked for cannot be done; one line says why."""

    exit_code = 2

    def format_message(self) -> str:
        """The message on one line, whatever a file name or a provider's error brought into it."""
        return one_line(self.message)


class _Out(Console):
    """A console that leaves it to the command what a reader means who stops listening; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout() -> Console:
    """Where results go."""
    return _Out(highlight=False)


def stderr() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False)


def plain(text: str) -> str:
    """Without control characters: recorded text must not steer the reader's terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def one_line(text: str) -> str:
    """Without control characters and line ends."""
    return plain(" ".join(text.split()))


@contextmanager
def guarded() -> Iterator[None]:
    """While a command works: our errors become one line and exit status 2, Ctrl-C one line and 130."""
    try:
        yield
    except ContextSummarizeError as error:
        raise Refused(str(error)) from error
    except (KeyboardInterrupt, click.Abort) as error:
        asked = isinstance(error, click.Abort)  # at a question, whose line has no end yet
        stderr().print("\nInterrupted." if asked else "Interrupted.")
        click.get_current_context().exit(INTERRUPTED)


@contextmanager
def printing() -> Iterator[Console]:
    """While a result is printed: a reader who stops listening (`| head`) is no error, a full disk is one line."""
    try:
        yield stdout()
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would fail again when the interpreter closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise Refused(f"the result cannot be written: {error.strerror or error}") from error


def print_json(value: Any) -> None:
    """Print one JSON document and nothing else; in ASCII, so that it can be shown and piped anywhere."""
    with printing():
        sys.stdout.write(json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n")


@contextmanager
def working(verb: str, name: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, nothing where that is no terminal; log lines beside it."""
    err = stderr()
    shown = f"{verb} {plain(name)[:_NAME]}" if err.width >= 80 else verb
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn("boundaries: {task.fields[made]}"),
        TimeElapsedColumn(),
    )
    with _log_lines(err), Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(shown, total=total, made=0)
        yield lambda rows, boundaries: bar.update(task, completed=rows, made=boundaries)


class _LogLines(logging.Handler):
    """Warnings as single lines, the first few of them."""

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
    """A title, and one paragraph that says what stands below it."""
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
    """What the columns of a table hold."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(style="dim", max_width=WIDTH - 10)
    for title, meaning in meanings:
        grid.add_row(title, meaning)
    return grid
