"""Parts of all commands: options and their values, tables, JSON, warnings, a progress bar, errors and exit status."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from context_summarize.config import Config
from context_summarize.errors import CommandError, ContextSummarizeError

_WIDTH, _LINE = 100, 400
"""Most terminal columns of a sentence; most characters of a warning."""
_REMARK, _WIDEST = 30, 10_000
"""Fewest terminal columns of a remark in a table; a width that no terminal has."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def read_config(given: Sequence[str]) -> Config:
    """Returns the settings given on the command line.

    Raises:
        CommandError: a setting has no value, or is given twice.
        ConfigError: a setting is unknown or wrong.
    """
    settings: dict[str, Any] = {}
    for pair in given:
        key, sign, text = (part.strip() for part in pair.partition("="))
        if not sign:
            raise CommandError(f"--config {pair!r} has no value; expected KEY=VALUE, such as keep_recent=20")
        if key in settings:
            raise CommandError(f"--config gives {key} twice; keep one of them")
        try:
            settings[key] = None if text.lower() == "none" else json.loads(text)
        except (ValueError, RecursionError):
            settings[key] = text
    return Config.from_mapping(settings)


def plain(text: str) -> str:
    """Returns the text without control characters: recorded text must not control the reader's terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def remark(text: str, colour: str) -> None:
    """Prints a remark about the result, as one line of stderr."""
    click.secho(plain(" ".join(text.split())), fg=colour, err=True)


class Commands(click.Group):
    """Prints warnings on stderr, and turns our errors into exit status 2, and Ctrl-C into exit status 130."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command. Its help is written by click, which knows a closed pipe but no full disk."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            remark(f"Error: {error.strerror or error}", "red")
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command."""
        root, warnings = logging.getLogger(), _Warnings(logging.WARNING)
        root.addHandler(warnings)
        try:
            return super().invoke(ctx)
        except ContextSummarizeError as error:
            click.echo(f"Error: {plain(str(error))}", err=True)  # it may contain a file's name or a provider's words
            ctx.exit(2)
        except KeyboardInterrupt:
            remark("Interrupted.", "red")
            ctx.exit(130)
        finally:
            root.removeHandler(warnings)


class _Warnings(logging.Handler):
    """Prints warnings, one line each, and each kind once: an outage of a provider causes one for every summary."""

    seen: frozenset[str] = frozenset()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg not in self.seen:
            self.seen |= {record.msg}
            remark(f"{record.levelname.lower()}: {record.getMessage()[:_LINE]}", "yellow")


Progressing: TypeAlias = Callable[[str, int], Callable[[int], None]]
"""Takes the name of a step and its size; returns a function that takes how much is done."""


@contextmanager
def progressing() -> Iterator[Progressing]:
    """Shows a progress bar on stderr; none if stderr is not a terminal."""
    err = Console(stderr=True)
    with Progress(console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("Reading", total=None)
        yield lambda what, total: lambda done: bar.update(task, description=what, completed=done, total=total)


class _Terminal(Console):
    """Standard output. If its reader closes it, as `head` does, later output is dropped."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints; if the output cannot be written, as on a full disk, the process ends with exit status 1."""
        try:
            super().print(*objects, **options)
        except OSError as error:
            remark(f"Error: standard output cannot be written: {error.strerror}", "red")
            super().on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Continues without a reader; rich would end the process with exit status 1."""
        with suppress(SystemExit):
            super().on_broken_pipe()


def echo(text: str, style: str | None = None) -> None:
    """Prints lines without wrapping or marking them."""
    _Terminal().out(text, style=style, highlight=False)


def print_json(value: Any) -> None:
    """Prints one JSON document and nothing else, in ASCII, which every terminal and pipe accepts."""
    echo(json.dumps(value, indent=2).replace("\x7f", "\\u007f"))


def sentence(text: str, style: str = "") -> None:
    """Prints a paragraph."""
    out = _Terminal(highlight=False)
    out.print(Text(plain(text), style=style), width=min(out.width, _WIDTH))


def heading(title: str, about: str) -> None:
    """Prints a title, and one paragraph that describes what follows."""
    sentence(f"\n{title}", "bold")
    sentence(f"{about}\n", "dim")


def table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints a table with a line below its header; columns of numbers are aligned right."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    for at, title in enumerate(titles):
        is_number = any(row[at][:1].isdigit() for row in cells)
        width = max(map(cell_len, (title, *(row[at] for row in cells))))
        made.add_column(title, justify="right" if is_number else "left", no_wrap=True, min_width=width)
    named = ([f"{title} {cell}" for title, cell in zip(titles, row, strict=True) if cell] for row in cells)
    _print_table(made, cells, map(", ".join, named))


def facts(lines: Sequence[tuple[str, str, str]]) -> None:
    """Prints a table of (what, figure, remark), without a header."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", style="bold", no_wrap=True)
    grid.add_column(style="dim", min_width=_REMARK)
    _print_table(grid, lines, (f"{what}: {figure} {remark}" for what, figure, remark in lines))


def _print_table(made: Table, rows: Iterable[Sequence[str]], paragraphs: Iterable[str]) -> None:
    """Prints a table with these rows; if the terminal is too narrow for it, a paragraph for each row."""
    out = _Terminal()
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    if out.measure(made, options=out.options.update(max_width=_WIDEST)).minimum <= out.width:
        out.print(made)
        return
    for text in paragraphs:
        sentence(f"- {text}")
