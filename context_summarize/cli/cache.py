"""`context-summarize cache`: shows the contents of the cache file, and empties it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click
from rich.filesize import decimal

from context_summarize.cli.common import echo, facts, json_option, plain, print_json, sentence
from context_summarize.stores import SqliteStore, open_file
from context_summarize.transcript.rendered import counted

_HELP = "The cache file, as in the setting `cache`.  [default: the file in the user's Amplifier folder]"
cache_option = click.option("--cache", metavar="PATH", help=_HELP)


@click.group("cache", short_help="Show or remove the stored summaries.")
def cache_group() -> None:
    """Show or remove the stored summaries.

    The file outlives the session: a resumed or forked session reads its summaries there and does not pay for them
    again. Summaries contain parts of the conversation, without secrets of well-known formats.
    """


@cache_group.command("stats", short_help="Show what the cache file holds.")
@cache_option
@json_option
def stats_command(cache: str | None, as_json: bool) -> None:
    """Show what the cache file holds. If there is no file, the command does not create one.

    --json prints an object with path, bytes, entries, oldest and newest (seconds since the epoch, or null).

    Exit status: 0, or 2 if the file cannot be read.
    """
    found = asyncio.run(_asked(cache, SqliteStore.stats))
    if as_json:
        print_json({**asdict(found), "path": str(found.path)})
        return
    echo(plain(f"Cache file: {found.path}{'' if found.path.exists() else ' (not made yet)'}"))
    entries = ("Entries", f"{found.entries:,}", "summaries, and records that let sessions resume")
    days = [("Oldest", _day(found.oldest), "UTC"), ("Newest", _day(found.newest), "UTC")]
    facts([("Size", decimal(found.bytes), "on disk"), entries, *days])


@cache_group.command("clear", short_help="Remove all stored summaries.")
@cache_option
@click.confirmation_option(prompt="Remove all stored summaries?", help="Do not ask.")
def clear_command(cache: str | None) -> None:
    """Remove all stored summaries. Running sessions continue; they make the summaries again when they need them.

    Exit status: 0 done, 1 not confirmed, 2 if the file cannot be written.
    """
    removed = asyncio.run(_asked(cache, SqliteStore.clear))
    sentence(f"Removed {counted(removed, 'entry', 'entries')}.")


async def _asked(cache: str | None, question: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
    store = open_file(cache)
    try:
        return await question(store)
    finally:
        await store.close()


def _day(seconds: float | None) -> str:
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
