"""Rendered rows: the text of a row for recall and the thread, the lines of its calls, and the text of several rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from context_summarize.transcript.marks import mark


@dataclass(frozen=True, slots=True)
class RenderedRow:
    """One history row as recall and the thread read it."""

    number: int
    """Its message."""
    role: str
    name: str | None
    """Tool name of a result, when it is known."""
    text: str
    own: str | None = field(default=None, compare=False, repr=False)
    """For a user row the user's own text, without results and attachments, which may be ""; else None."""
    calls: int = field(default=0, compare=False, repr=False)
    """How many calls the row makes; their lines are the last ones that look like calls."""
    is_answer: bool = field(default=False, compare=False, repr=False)
    """True for the result of one call."""

    @property
    def said(self) -> str:
        """The text of the row; for a user row only the user's own text."""
        return self.text if self.own is None else self.own


def render_rows(rows: Sequence[RenderedRow]) -> str:
    """Returns `[mN] role` or `[mN] tool NAME`, the text, and a blank line between blocks."""
    return "\n\n".join(f"{mark(row.number)} {row.role}{_name_mark(row)}\n{row.text}" for row in rows)


def _name_mark(row: RenderedRow) -> str:
    return "" if row.name is None else " " + row.name.replace("\n", " ")


def may_be_call(line: str) -> bool:
    """Returns True for a line that begins like the line of a call."""
    return line.startswith("call ")


def calls_in(text: str) -> Iterator[tuple[str, str]]:
    """Yields (name, argument text) for every line `call NAME(ARGUMENTS)`."""
    for line in text.split("\n"):
        if may_be_call(line) and line.endswith(")"):
            name, bracket, arguments = line[5:-1].partition("(")
            if bracket and name and " " not in name:
                yield name, arguments


def without_calls(text: str, name: str) -> str:
    """Returns the text with the lines that call one tool emptied."""
    begin = f"call {name}("
    return re.sub(rf"(?m)^{re.escape(begin)}.*$", "", text) if begin in text else text


def counted(number: int, one: str, many: str | None = None) -> str:
    """Returns `1 row` or `1,200 rows`; `many` is the plural if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
