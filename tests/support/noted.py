"""The row of notes, read back line by line."""

from __future__ import annotations

from context_summarize.notes.row import HEADINGS
from context_summarize.testing import JsonRow
from tests.support.views import notes


def lines_of(view: list[JsonRow]) -> list[list[str]]:
    """Returns the lines under each heading, in the order of `HEADINGS`, without the frame; none where it has no row."""
    found: list[list[str]] = [[] for _ in HEADINGS]
    row, at = notes(view), 0
    for line in str(row["content"]).split("\n")[1:-1] if row else []:
        plain = line.removeprefix("> ")
        opened = next((number for number, heading in enumerate(HEADINGS) if plain.startswith(heading.strip())), None)
        at, rest = (at, plain) if opened is None else (opened, plain[len(HEADINGS[opened].rstrip("\n")) :])
        found[at] += [rest] if rest else []
    return found


def words_of_the_user(view: list[JsonRow]) -> list[str]:
    """Returns the lines of the user's words, without those of the agent's."""
    return [line for line in lines_of(view)[0] if line.startswith("#") and " → #" not in line]
