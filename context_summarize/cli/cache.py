"""`context-summarize cache`: shows what the cache file holds, and empties it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from context_summarize.cli.options import json_option
from context_summarize.cli.terminal import Refused, facts, guarded, plain, print_json, printing, sentence
from context_summarize.stores import SqliteStore, open_file
from context_summarize.stores.sqlite import StoreStats
from context_summarize.transcript.wording import counted

T = TypeVar("T")
_NO_FILE = "The file does not exist yet. The first stored summary creates it."

cache_option = click.option(
    "--cache",
    metavar="PATH",
    help="The cache file, as in the setting `cache`.  [default: the file in the user's Amplifier folder]",
)


@click.group("cache", short_help="Show or remove the stored summaries.")
def cache_group() -> None:
    """Show or remove the stored summaries.

    Summaries are stored in a file that outlives the session. A resumed or forked session reads them there and does not
    pay for them again. They contain parts of the conversation. Secrets of well-known formats are removed.
    """


@cache_group.command("stats", short_help="Show what the cache file holds.")
@cache_option
@json_option
def stats(cache: str | None, as_json: bool) -> None:
    """Show what the cache file holds. If there is no file, the command does not create one.

    --json prints an object with path, bytes, entries, oldest and newest (seconds since the epoch, or null).

    Exit status: 0, or 2 if the file cannot be read.
    """
    with guarded():
        found = asyncio.run(_with_store(cache, lambda store: store.stats()))
    if as_json:
        print_json(_as_data(found))
        return
    with printing() as out:
        sentence(out, plain(f"Cache file: {found.path}"))
        if not found.path.exists():
            sentence(out, _NO_FILE)
        out.print(facts(_lines(found)))


@cache_group.command("clear", short_help="Remove all stored summaries.")
@cache_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def clear(cache: str | None, yes: bool, as_json: bool) -> None:
    """Remove all stored summaries. Running sessions continue; they make the summaries again when they need them.

    --json prints an object with path and removed, the number of entries.

    Exit status: 0 done, 1 not confirmed, 2 if the file cannot be written, or if there is no terminal and no --yes.
    """
    with guarded():
        path = open_file(cache).path
        if not yes:
            _confirm(asyncio.run(_with_store(cache, lambda store: store.stats())))
        removed = asyncio.run(_with_store(cache, lambda store: store.clear()))
    if as_json:
        print_json({"path": str(path), "removed": removed})
        return
    with printing() as out:
        sentence(out, plain(f"Removed {counted(removed, 'entry', 'entries')} from {path}."))


async def _with_store(cache: str | None, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    store = open_file(cache)
    try:
        return await work(store)
    finally:
        await store.close()


def _confirm(found: StoreStats) -> None:
    """Ask at the terminal.

    Raises:
        Refused: there is no terminal.
    """
    if not _at_terminal():
        raise Refused("there is no terminal to ask at; give --yes to remove all stored summaries")
    what = counted(found.entries, "entry", "entries")
    if not click.confirm(plain(f"Remove {what} ({_size(found.bytes)}) from {found.path}?"), err=True):
        click.echo("Nothing was removed.", err=True)
        click.get_current_context().exit(1)


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def _as_data(found: StoreStats) -> dict[str, Any]:
    return {**asdict(found), "path": str(found.path)}


def _lines(found: StoreStats) -> list[tuple[str, str, str]]:
    lines = [
        ("Size", _size(found.bytes), "on disk"),
        ("Entries", f"{found.entries:,}", "summaries, and records that let sessions resume"),
    ]
    if found.oldest is not None and found.newest is not None:
        lines += [("Oldest", _day(found.oldest), "UTC"), ("Newest", _day(found.newest), "UTC")]
    return lines


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
