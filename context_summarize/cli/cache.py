"""`context-summarize cache`: shows what the cache file holds, and empties it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.table import Table
from rich.text import Text

from context_summarize.cli.options import json_option, limit_option
from context_summarize.cli.terminal import (
    Refused,
    facts,
    guarded,
    one_line,
    plain,
    print_json,
    printing,
    sentence,
    table,
)
from context_summarize.stores.address import is_shared_address
from context_summarize.stores.open import MEMORY, open_file
from context_summarize.stores.sqlite import SqliteStore
from context_summarize.stores.sqlite_entries import StoreStatistics
from context_summarize.stores.sqlite_listing import KeptSession, Listing
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

    --json prints an object with path, bytes, summaries, records, oldest, newest (seconds since the epoch, or null),
    tokens and source_tokens.

    Exit status: 0, or 2 if the file cannot be read.
    """
    with guarded():
        found = asyncio.run(_with_store(cache, lambda store: store.statistics()))
    if as_json:
        print_json(_as_data(found))
        return
    with printing() as out:
        sentence(out, plain(f"Cache file: {found.path}"))
        if not found.path.exists():
            sentence(out, _NO_FILE)
        out.print(facts(_lines(found)))


@cache_group.command("list", short_help="List what is stored, by session.")
@cache_option
@limit_option
@json_option
def list_command(cache: str | None, limit: int, as_json: bool) -> None:
    """List what the cache file holds, by session: when, compactions, summaries, size, first words.

    The file stores no session ids. Sessions with the same first messages, such as forks, are one line. Its mark is the
    beginning of the key of its first summary, and its first words are those of that summary. The command does not count
    as use of an entry.

    --json prints an object with path, sessions (a list of objects with key, oldest, newest (seconds since the epoch),
    records, summaries, bytes and first_words), others and other_bytes (entries that belong to no session).

    Exit status: 0, or 2 if the file cannot be read.
    """
    with guarded():
        path = _file(cache).path
        found = asyncio.run(_with_store(cache, lambda store: store.listing()))
    if as_json:
        print_json({"path": str(path), **asdict(found), "sessions": [asdict(each) for each in found.sessions[:limit]]})
        return
    with printing() as out:
        sentence(out, plain(f"Cache file: {path}"))
        if found.sessions:
            out.print()
            out.print(_sessions_table(found.sessions[:limit]), width=min(out.width, 120))
        else:
            sentence(out, "No session has stored a compaction in it." if path.exists() else _NO_FILE)
        out.print()
        for line in _below(found, limit):
            sentence(out, line)


def _sessions_table(sessions: Sequence[KeptSession]) -> Table:
    made = table()
    made.expand = True
    made.add_column("Session", no_wrap=True)
    made.add_column("When (UTC)", no_wrap=True)
    made.add_column("Summaries", justify="right", no_wrap=True)
    made.add_column("Size", justify="right", no_wrap=True)
    made.add_column("First words", no_wrap=True, overflow="ellipsis", ratio=1)
    for each in sessions:
        words = Text(one_line(each.first_words)) if each.first_words else Text("(no longer stored)", style="dim")
        made.add_row(
            Text(each.key[:8], style="bold"), _day(each.newest), f"{each.summaries:,}", _size(each.bytes), words
        )
    return made


def _below(found: Listing, limit: int) -> Iterator[str]:
    if (rest := len(found.sessions) - limit) > 0:
        yield f"{counted(rest, 'older session is', 'older sessions are')} not listed (--limit)."
    if found.others:
        yield (
            f"{counted(found.others, 'entry', 'entries')} ({_size(found.other_bytes)}) without a session: summaries "
            "made ahead, of sessions that never compacted, or of another release."
        )


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
        path = _file(cache).path
        if not yes:
            _confirm(asyncio.run(_with_store(cache, lambda store: store.statistics())))
        removed = asyncio.run(_with_store(cache, lambda store: store.clear()))
    if as_json:
        print_json({"path": str(path), "removed": removed})
        return
    with printing() as out:
        sentence(out, plain(f"Removed {counted(removed, 'entry', 'entries')} from {path}."))


def _file(cache: str | None) -> SqliteStore:
    if cache is not None and (cache == MEMORY or is_shared_address(cache)):
        raise Refused(f"--cache {cache!r} is not a file; this command handles files, a server has its own commands")
    return open_file(cache)


async def _with_store(cache: str | None, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    store = _file(cache)
    try:
        return await work(store)
    finally:
        await store.close()


def _confirm(found: StoreStatistics) -> None:
    """Ask at the terminal.

    Raises:
        Refused: there is no terminal.
    """
    if not _at_terminal():
        raise Refused("there is no terminal to ask at; give --yes to remove all stored summaries")
    what = f"{counted(found.summaries, 'summary', 'summaries')} and {counted(found.records, 'record', 'records')}"
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
        ("Summaries", f"{found.summaries:,}", f"{found.tokens:,} tokens, made from {found.source_tokens:,} tokens"),
        ("Compactions", f"{found.records:,}", "records that let sessions resume"),
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
