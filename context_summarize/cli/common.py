"""Parts of all commands: settings, tables, warnings, a progress bar, errors and exit status."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias

import click
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from context_summarize.cli.providers import provider_forms
from context_summarize.config import Config
from context_summarize.errors import CommandError, ContextSummarizeError


def read_config(given: Sequence[str]) -> Config:
    """Returns the settings given on the command line.

    Raises:
        CommandError: one is not KEY=VALUE, is given twice, or cannot be set here.
        ConfigError: a setting is unknown or wrong.
    """
    settings: dict[str, Any] = {}
    for pair in given:
        key, sign, text = (part.strip() for part in pair.partition("="))
        if not (key and sign):
            raise CommandError(f"--config {pair!r} is not of the form KEY=VALUE, such as keep_recent=20")
        if key in settings:
            raise CommandError(f"--config gives {key} twice; keep one of them")
        try:
            settings[key] = None if text.lower() == "none" else json.loads(text)
        except (ValueError, RecursionError):
            settings[key] = text
    if settings.get("persistence") is not None:
        raise CommandError("persistence cannot be set here: a replay writes no history; leave it out")
    for name in ("summary_provider", "summary_model_role"):
        if settings.get(name) is not None:
            raise CommandError(f"{name} cannot be set here: --provider names it; {provider_forms()}")
    return Config(**settings)


def check_output(path: Path, suffix: str) -> None:
    """Checks, before the work, that a file can be written, and takes the place of no session.

    Raises:
        CommandError: the name does not end in the suffix, or no file can be written there.
    """
    if path.suffix != suffix:
        raise CommandError(f"{path} does not end in {suffix}; name a file that does")
    try:
        with path.open("ab") if path.exists() else TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}; name a file elsewhere") from None


def plain(text: str) -> str:
    """Returns the text without control characters: recorded text must not control the reader's terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)


def remark(text: str, colour: str) -> None:
    """Prints a remark about the result, as one line of stderr."""
    click.secho(plain(" ".join(text.split())), fg=colour, err=True)


class Commands(click.Group):
    """Prints warnings on stderr, and turns our errors into exit status 2, and Ctrl-C into exit status 130."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command; click knows a closed pipe but no full disk."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            remark(f"Error: {where}{error.strerror or error}", "red")
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
            remark(f"{record.levelname.lower()}: {record.getMessage()}", "yellow")


Progressing: TypeAlias = Callable[[str, int], Callable[[], None]]
"""Takes the name of a step and its size; returns a function that is called for each part that is done."""


@contextmanager
def progressing() -> Iterator[Progressing]:
    """Shows a progress bar on stderr; none if stderr is not a terminal."""
    err = Console(stderr=True)
    with Progress(console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("Reading", total=None)

        def step(what: str, total: int) -> Callable[[], None]:
            bar.reset(task, description=what, total=total)
            return partial(bar.advance, task)

        yield step


def sentence(text: str, style: str = "") -> None:
    """Prints a paragraph."""
    Console(highlight=False).print(Text(plain(text), style=style))


def heading(title: str, about: str) -> None:
    """Prints a title, and one paragraph that describes what follows."""
    sentence(f"\n{title}", "bold")
    sentence(f"{about}\n", "dim")


def table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints a table, without a header if no column has a title; columns of numbers are aligned right."""
    named, cells = any(titles), [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=named, header_style="bold")
    made.padding = (0, 1 if named else 2, 0, 0)
    for at, title in enumerate(titles):
        is_number = all(row[at][:1].isdigit() for row in cells if row[at])
        made.add_column(title, justify="right" if is_number else "left")
    for row in cells:
        made.add_row(*(Text(plain(cell)) for cell in row))
    Console().print(made)
