"""`context-summarize cache`: what the file of kept summaries holds, and how to empty it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from context_summarize.cli.options import json_option
from context_summarize.cli.terminal import Refused, facts, guarded, plain, print_json, printing, sentence
from context_summarize.stores.address import is_shared_address
from context_summarize.stores.open import MEMORY, cache_path
from context_summarize.stores.sqlite import SqliteStore
from context_summarize.stores.sqlite_entries import StoreStatistics

T = TypeVar("T")

cache_option = click.option(
    "--cache",
    metavar="PATH",
    help="The file, as the setting `cache` names it.  [default: the one in the user's Amplifier folder]",
)


@click.group("cache", short_help="Look at the kept summaries, or remove them.")
def cache_group() -> None:
    """Look at the kept summaries, or remove them.

    Summaries outlive the session in a file, so that a session that is resumed or forked pays for none of them twice.
    They hold what was said, without secrets of well-known formats.
    """


@cache_group.command("stats", short_help="What the file holds.")
@cache_option
@json_option
def stats(cache: str | None, as_json: bool) -> None:
    """Tell what the file of kept summaries holds. Where there is no file, none is made.

    --json prints an object with path, bytes, summaries, records, oldest, newest (seconds since the epoch, or null),
    tokens and source_tokens.

    Exit status: 0, or 2 where the file cannot be read.
    """
    with guarded():
        found = asyncio.run(_with_store(_path(cache), lambda store: store.statistics()))
    if as_json:
        print_json(_as_data(found))
        return
    with printing() as out:
        sentence(out, plain(f"Kept summaries: {found.path}"))
        if not found.path.exists():
            sentence(out, "There is no such file yet; the first summary that is kept makes it.")
        out.print(facts(_lines(found)))


@cache_group.command("clear", short_help="Remove every kept summary.")
@cache_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def clear(cache: str | None, yes: bool, as_json: bool) -> None:
    """Remove every kept summary. Sessions go on; what they need again is summarised again.

    --json prints an object with path and removed, the number of entries.

    Exit status: 0 done, 1 not confirmed, 2 the file cannot be written, or there is no terminal to ask at and no --yes.
    """
    with guarded():
        path = _path(cache)
        if not yes:
            _confirm(asyncio.run(_with_store(path, lambda store: store.statistics())))
        removed = asyncio.run(_with_store(path, lambda store: store.clear()))
    if as_json:
        print_json({"path": str(path), "removed": removed})
        return
    with printing() as out:
        sentence(out, plain(f"Removed {_count(removed, 'entry', 'entries')} from {path}."))


def _path(cache: str | None) -> Path:
    if cache is not None and (cache == MEMORY or is_shared_address(cache)):
        raise Refused(f"--cache {cache!r} is no file; this command looks after files, a server has commands of its own")
    return cache_path(cache)


async def _with_store(path: Path, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    store = SqliteStore(path)
    try:
        return await work(store)
    finally:
        await store.close()


def _confirm(found: StoreStatistics) -> None:
    """Ask at the terminal.

    Raises:
        Refused: there is none.
    """
    if not _at_terminal():
        raise Refused("there is no terminal to ask at; give --yes to remove every kept summary")
    what = f"{_count(found.summaries, 'summary', 'summaries')} and {_count(found.records, 'record', 'records')}"
    if not click.confirm(plain(f"Remove {what} ({_size(found.bytes)}) from {found.path}?"), err=True):
        click.echo("Nothing was removed.", err=True)
        click.get_current_context().exit(1)


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def _as_data(found: StoreStatistics) -> dict[str, Any]:
    return {**asdict(found), "path": str(found.path)}


def _lines(found: StoreStatistics) -> list[tuple[str, str, str]]:
    lines = [
        ("Size", _size(found.bytes), "on disk"),
        ("Summaries", f"{found.summaries:,}", f"{found.tokens:,} tokens, for {found.source_tokens:,} tokens read"),
        ("Boundaries", f"{found.records:,}", "records from which sessions resume"),
    ]
    if found.oldest is not None and found.newest is not None:
        lines += [("Oldest", _day(found.oldest), "UTC"), ("Newest", _day(found.newest), "UTC")]
    return lines


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
