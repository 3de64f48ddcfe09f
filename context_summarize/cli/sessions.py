"""`context-summarize sessions`: lists the stored sessions that other commands take by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from context_summarize.cli.options import json_option, limit_option
from context_summarize.cli.terminal import guarded, one_line, plain, print_json, printing, sentence, table
from context_summarize.errors import SessionFileError
from context_summarize.replay.stored_sessions import (
    PROGRAMS,
    Program,
    SessionSketch,
    StoredSession,
    sessions_folder,
    sketch,
    stored_sessions,
)

_LEAST_WORDS = 20
"""Terminal columns that first words need to say something."""


@dataclass(frozen=True, slots=True)
class _Listed:
    session: StoredSession
    sketch: SessionSketch | None
    """None where the file cannot be read."""


@click.command("sessions", short_help="List the stored sessions.")
@click.option(
    "--of",
    "program",
    type=click.Choice(PROGRAMS),
    default=PROGRAMS[0],
    show_default=True,
    help="The program that has stored them.",
)
@limit_option
@json_option
def sessions_command(program: Program, limit: int, as_json: bool) -> None:
    """List the stored sessions, newest first: id, when, messages, first words.

    Amplifier stores them in the user's Amplifier folder (AMPLIFIER_HOME, else ~/.amplifier), Claude Code in ~/.claude
    (or CLAUDE_CONFIG_DIR). `replay`, `inspect`, `report` and `compare` take an id, or as much of its beginning as no
    other session shares. The command only reads.

    --json prints an object with folder, stored (the number of sessions) and sessions (a list of objects with id,
    program, path, changed in seconds since the epoch, messages, bytes and first_words; the last three are null for a
    file that cannot be read).

    Exit status: 0, also if there are none; 2 if the user has no home folder.
    """
    with guarded():
        folder = sessions_folder(program)
        every = stored_sessions(program)
        listed = [_Listed(session, _sketch(session)) for session in every[:limit]]
    if as_json:
        print_json({"folder": str(folder), "stored": len(every), "sessions": [_data(item) for item in listed]})
        return
    with printing() as out:
        if not every:
            other = next(name for name in PROGRAMS if name != program)
            sentence(out, plain(f"No sessions in {folder}. Name a file, or list another program's: --of {other}."))
            return
        lengths = _lengths(every)
        _print(out, listed, lengths)
        out.print()
        newest = one_line(listed[0].session.id)[: lengths[listed[0].session.id]]
        rest = len(every) - len(listed)
        more = f"\n{rest:,} older sessions are not listed (--limit)." if rest else ""
        sentence(out, f"Look at one with: context-summarize report {newest}{more}")


def _sketch(session: StoredSession) -> SessionSketch | None:
    try:
        return sketch(session)
    except SessionFileError:
        return None


def _data(item: _Listed) -> dict[str, Any]:
    session, found = item.session, item.sketch
    return {
        "id": session.id,
        "program": session.program,
        "path": str(session.path),
        "changed": session.changed,
        "messages": found and found.messages,
        "bytes": found and found.bytes,
        "first_words": found and found.first_words,
    }


def _lengths(every: list[StoredSession]) -> dict[str, int]:
    """Characters of each id that tell it from all others."""
    ids = sorted({session.id for session in every})
    found = {}
    for at, name in enumerate(ids):
        beside = [ids[other] for other in (at - 1, at + 1) if 0 <= other < len(ids)]
        shared = max((_shared(name, other) for other in beside), default=0)
        found[name] = min(len(name), max(8, shared + 1))
    return found


def _shared(one: str, other: str) -> int:
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def _print(out: Console, listed: list[_Listed], lengths: dict[str, int]) -> None:
    """A line for each session; a narrow terminal shows as much of each id as a command needs."""
    shown = {item.session.id: item.session.id for item in listed}
    taken = 17 + 9 + 3  # when, messages, gaps
    if out.width - taken - max(map(len, shown)) < _LEAST_WORDS:
        shown = {name: name[: lengths[name]] for name in shown}
    made = table()
    made.add_column("Session", no_wrap=True)
    made.add_column("When", no_wrap=True)
    made.add_column("Messages", justify="right", no_wrap=True)
    made.add_column("First words", no_wrap=True, overflow="ellipsis", ratio=1)
    made.expand = True
    for item in listed:
        found = item.sketch
        made.add_row(
            Text(one_line(shown[item.session.id]), style="bold"),
            datetime.fromtimestamp(item.session.changed).strftime("%Y-%m-%d %H:%M"),
            "–" if found is None else f"{found.messages:,}",
            Text("(cannot be read)", style="yellow") if found is None else Text(one_line(found.first_words)),
        )
    out.print(made, width=min(out.width, 120))
