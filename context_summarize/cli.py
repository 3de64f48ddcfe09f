"""The command line: `context-summarize replay` shows what the module would do to a recorded session."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ._version import __version__
from .config import Config
from .errors import ContextSummarizeError
from .host import Window, provider_window
from .messages import SOURCE, analyse, render_parts
from .offline import OfflineProvider
from .replay import ReplayResult, mounted_provider, read_session, replay
from .tokens import TokenCounter
from .types import JsonRow

OFFLINE = "offline"
WINDOW = 40_000
MAX_OUTPUT = 4_000
INTERRUPTED = 130
_WIDTH = 100
"""Columns that sentences take at most."""
_LINES = {False: 3, True: 6}
"""Lines that `--show-view` gives to the text of a row, and of a summary; further lines to its calls."""
_WARNINGS = 5
"""Log lines that are shown; a provider that is down says the same thing for every summary."""


class _Out(Console):
    """A console that leaves it to the command what a reader means who stops listening; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Refused(click.ClickException):
    """What was asked for cannot be done; one line says why."""

    exit_code = 2

    def format_message(self) -> str:
        """The message on one line, whatever a file name or a provider's error brought into it."""
        return _plain(" ".join(self.message.split()))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="context-summarize")
def main() -> None:
    """Keeps an agent session inside its model's window by summarising its older parts.

    This command shows what the module does, outside of a session. In a session, Amplifier loads it as the context
    module "context-summarize".
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a recorded row may hold what the terminal cannot show


@main.command("replay", short_help="Replay a recorded session and check every request.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.jsonl")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help=f"Context window to replay through.  [default: {WINDOW}, or what the named provider says]",
)
@click.option(
    "--max-output",
    type=click.IntRange(min=0),
    metavar="TOKENS",
    help=f"Tokens of the window kept free for the answer.  [default: {MAX_OUTPUT}, or what the named provider says]",
)
@click.option(
    "--provider",
    default=OFFLINE,
    metavar="NAME",
    show_default=True,
    help="Who writes the summaries: `offline` (code, no model, no key), or an installed Amplifier provider module by "
    "its entry-point name, such as provider-openai.",
)
@click.option(
    "--config",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the module, such as keep_recent=20; may be repeated. VALUE is read as JSON where it is JSON, "
    "else as text; `none` is no value.",
)
@click.option("--show-view", is_flag=True, help="Also print the rows of the last request, each on a few lines.")
@click.pass_context
def replay_command(
    context: click.Context,
    file: Path,
    window: int | None,
    max_output: int | None,
    provider: str,
    settings: tuple[str, ...],
    show_view: bool,
) -> None:
    """Replay a recorded session and check every request.

    FILE.jsonl holds one message a line, as Amplifier's loops store them. They are added one by one; before every
    assistant message the module is asked for the request that an agent would send at that point. Nothing is sent
    anywhere but to the provider that writes the summaries.

    Exit status: 0 all checks passed, 1 a check failed, 2 the file or an option cannot be used, 130 interrupted.
    """
    out, err = _Out(highlight=False), Console(stderr=True, highlight=False)
    try:
        config = Config.from_mapping(_settings(settings))
        rows = read_session(file)
        with _log_lines(err), _progress(err, file.name, len(rows)) as progress:
            result = asyncio.run(_replay(rows, config, provider, window, max_output, progress))
    except ContextSummarizeError as error:
        raise Refused(str(error)) from error
    except KeyboardInterrupt:
        err.print("Interrupted.")
        context.exit(INTERRUPTED)
    _printed(out, file.name, result, show_view=show_view)
    if result.failed is not None:
        problem = _plain(f"FAILED: {result.failed.name}: {result.failed.first}")
        err.print(Text(problem, style="bold red"), soft_wrap=True)
        context.exit(1)


def _printed(out: Console, name: str, result: ReplayResult, *, show_view: bool) -> None:
    """Print the result; a reader who stops listening (`| head`) is no error, a full disk is one line."""
    try:
        print_result(out, name, result, show_view=show_view)
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would fail again when the interpreter closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise Refused(f"the result cannot be written: {error.strerror or error}") from error


# --- options --------------------------------------------------------------------------------------------------------


def _settings(given: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for item in given:
        key, sign, value = item.partition("=")
        if not sign:
            raise Refused(f"--config {item!r} has no value; expected KEY=VALUE, such as keep_recent=20")
        settings[key.strip()] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _replay(
    rows: Sequence[JsonRow],
    config: Config,
    name: str,
    window: int | None,
    max_output: int | None,
    progress: Callable[[int, int], None],
) -> ReplayResult:
    if name == OFFLINE:
        counter = TokenCounter()
        await counter.load()
        provider = OfflineProvider(
            counter.count,
            context_window=window or WINDOW,
            max_output_tokens=MAX_OUTPUT if max_output is None else max_output,
        )
        return await replay(rows, provider=provider, name=name, config=config, progress=progress)
    async with mounted_provider(name) as (mounted_as, mounted):
        budget = await _explicit_budget(mounted, config, window, max_output)
        return await replay(
            rows, provider=mounted, name=mounted_as, config=config, token_budget=budget, progress=progress
        )


async def _explicit_budget(provider: Any, config: Config, window: int | None, max_output: int | None) -> int | None:
    """Tokens for a request by the options that were given; None leaves it to the provider's window."""
    if window is None and max_output is not None:
        known = await provider_window(provider)
        window = known.context if known else None
    if window is None:
        return None
    return Window(window, MAX_OUTPUT if max_output is None else max_output).budget(config.safety_margin)


# --- while it runs --------------------------------------------------------------------------------------------------


@contextmanager
def _progress(err: Console, name: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr; nothing where that is no terminal."""
    columns = (
        TextColumn("Replaying {task.fields[name]}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[made]} boundaries"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("replay", total=total, name=_plain(name), made=0)
        yield lambda rows, boundaries: bar.update(task, completed=rows, made=boundaries)


class _LogLines(logging.Handler):
    """Warnings as single lines beside the progress bar, the first few of them."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console
        self.seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.seen += 1
        if self.seen <= _WARNINGS:
            line = _plain(" ".join(record.getMessage().split()))
            self._console.print(Text(f"{record.levelname.lower()}: {textwrap.shorten(line, 400)}", style="yellow"))


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


# --- what is printed ------------------------------------------------------------------------------------------------

_ROLE_STYLES = {
    "system": "cyan",
    "developer": "cyan",
    "user": "bold green",
    "assistant": "bold blue",
    "tool": "yellow",
    "function": "yellow",
}
_REASONS = {"threshold": "filling", "must_fit": "must fit", "manual": "asked"}
_COLUMNS = {
    "Row": "the assistant message whose request it was",
    "Before → after": "tokens of the request",
    "Folded": "stretches of older messages that a summary now stands for; with 0, long rows were shortened instead",
    "Merged": "summaries that were joined from several older ones",
    "Cached": "summaries that were there already and cost no call",
    "Digests": "stand-ins for summaries that the provider did not give, written by code",
    "Waited": "milliseconds that the request waited for its summaries",
    "Why": "filling: past the threshold; must fit: it would not have fitted",
}


def print_result(out: Console, name: str, result: ReplayResult, *, show_view: bool = False) -> None:
    """Print a replay: what was replayed, the last view if asked for, boundaries, totals, checks."""
    out.print()
    through = f"requests of at most {result.budget:,} tokens"
    if result.window is not None:
        through = f"a window of {result.window:,} tokens, {result.budget:,} of them for a request"
    _sentence(
        out,
        f"{_plain(name)}: {result.messages:,} messages, {result.history_tokens:,} tokens in all, replayed through "
        f"{through}.",
    )
    _sentence(out, _who(result))
    if not result.requests:
        _sentence(out, "It holds no assistant message, so there was no request to look at.")
    if show_view and result.last_view:
        _heading(out, "Last request", "What an agent would have sent last. ◆ marks a summary of older messages.")
        out.print(_view_table(result.last_view, out.width))
    _heading(
        out,
        "Boundaries",
        "At each of these requests the conversation had grown too large, and its older part was replaced by "
        "summaries. In between, a request only grows at its end.",
    )
    if result.boundaries:
        out.print(_boundary_table(result))
        out.print()
        out.print(_legend())
    else:
        _sentence(out, "None: no request grew that large. A smaller --window shows some.")
    _heading(out, "Totals", "The whole session. An agent makes one request for each assistant message.")
    out.print(_totals_table(result))
    _heading(out, "Checks", "What must hold whatever is summarised. If one fails, the command exits with 1.")
    out.print(_check_table(result))


def _who(result: ReplayResult) -> str:
    if result.provider == OFFLINE:
        return (
            "Provider: offline. It is no model: code picks exact words, ids and results out of the messages, without a "
            "key or network. A model writes better summaries (--provider)."
        )
    return f"Provider: {_plain(result.provider)}."


def _sentence(out: Console, text: str) -> None:
    out.print(Text(text), width=min(out.width, _WIDTH))


def _heading(out: Console, title: str, sentence: str) -> None:
    out.print()
    out.print(Text(title, style="bold"))
    out.print(Text(sentence, style="dim"), width=min(out.width, _WIDTH))
    out.print()


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")


def _boundary_table(result: ReplayResult) -> Table:
    table = _table()
    for title in _COLUMNS:
        table.add_column(title, justify="left" if title == "Why" else "right", no_wrap=True)
    for line in result.boundaries:
        table.add_row(
            f"{line.row:,}",
            f"{line.before_tokens:,} → {line.after_tokens:,}",
            str(line.segments),
            str(line.merged),
            str(line.from_cache),
            Text(str(line.digests), style="yellow" if line.digests else ""),
            f"{line.wait_ms:,} ms",
            _REASONS.get(line.reason, line.reason),
        )
    return table


def _legend() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="dim", max_width=_WIDTH - 10)
    for title, meaning in _COLUMNS.items():
        table.add_row(title, meaning)
    return table


def _totals_table(result: ReplayResult) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(style="dim")
    used = result.largest_view / result.budget
    lines = (
        ("Messages", f"{result.messages:,}", f"{result.history_tokens:,} tokens, all of them kept"),
        ("Requests", f"{result.requests:,}", f"in {result.seconds:.1f} s"),
        ("Largest request", f"{result.largest_view:,}", f"tokens of {result.budget:,} allowed ({used:.0%})"),
        ("Rows sent unchanged", f"{result.stable_share:.1%}", "since the request before: a prompt cache has them"),
        ("Provider calls", f"{result.provider_calls:,}", f"for summaries, {result.failed_calls:,} failed"),
        ("Provider tokens in", f"{result.provider_input_tokens:,}", "read to summarise"),
        ("Provider tokens out", f"{result.provider_output_tokens:,}", "written as summaries"),
    )
    for line in lines:
        table.add_row(*line)
    return table


_MEANINGS = {
    "History intact": "every message is kept as it was added",
    "Pairs intact": "each call is followed by its results",
    "User first": "the conversation opens with a user",
    "Valid rows": "Amplifier accepts each row",
    "Within budget": "no request is too large",
}


def _check_table(result: ReplayResult) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for check in result.checks:
        verdict = Text("ok", style="bold green") if check.ok else Text("FAILED", style="bold red")
        count = f"{check.checked:,}" if check.ok else f"{check.broken:,} of {check.checked:,}"
        table.add_row(check.name, verdict, f"{count} {check.unit}", _MEANINGS.get(check.name, ""))
    return table


def _view_table(rows: Sequence[JsonRow], width: int) -> Table:
    """The rows of a view, each on a few lines."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    room = max(20, min(width, _WIDTH) - 20)
    for at, row in enumerate(rows, 1):
        marks = row.get("metadata") or {}
        label = Text(row["role"], style=_ROLE_STYLES.get(row["role"], ""))
        summary = marks.get("source") == SOURCE and "messages" in marks
        if summary:
            label = Text("◆ summary\n{} to {}".format(*marks["messages"]), style="bold magenta")
        analysed = analyse(row)
        parts = render_parts(analysed, {call_id: call_id for call_id in analysed.result_ids}, ())
        texts = [text for _, text in parts]
        said, calls = texts[: len(texts) - len(analysed.calls)], texts[len(texts) - len(analysed.calls) :]
        lines = _cut("\n".join(said), room, _LINES[summary])
        lines += [line for text in calls[:3] for line in _cut(text, room, 1)]
        lines += [f"and {len(calls) - 3} more calls"] if len(calls) > 3 else []
        table.add_row(str(at), label, Text("\n".join(lines)) if lines else Text("(empty)", style="dim"))
    return table


def _cut(text: str, width: int, most: int) -> list[str]:
    """The first lines of a text."""
    return textwrap.wrap(_plain(text[: 2 * most * width]), width, max_lines=most, placeholder=" …")


def _plain(text: str) -> str:
    """Without control characters: a recorded row must not steer the reader's terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)
