"""Rendered rows: what the summariser sees of a row, and the text of several rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class RenderedRow:
    """One history row as the summariser sees it."""

    number: int
    """Counted from 1 within its segment."""
    role: str
    name: str | None
    """Tool name of a result, when it is known."""
    text: str
    own: str | None = field(default=None, compare=False, repr=False)
    """Of a user row: the text of the user, without results and attachments, "" where it is none; else None."""
    left_out: tuple[int, int] | None = field(default=None, compare=False, repr=False)
    """Characters that were left out of a row that is too large to be read, and its characters; None: all are here."""

    @property
    def said(self) -> str:
        """What was said in the row: of a user row the user's own text."""
        return self.text if self.own is None else self.own


_HEADER = re.compile(r"^#([0-9]{1,9}) (user|assistant|tool)(?: (.*))?$")


def render_rows(rows: Sequence[RenderedRow]) -> str:
    """The transcript format: `#N role` or `#N tool NAME`, the text, and a blank line between blocks."""
    return "\n\n".join(f"#{row.number} {row.role}{_name_mark(row)}\n{row.text}" for row in rows)


def parse_rendered(text: str) -> tuple[RenderedRow, ...]:
    """The rows of a rendered transcript; text before its first header is left out.

    A header line counts only when its number follows the number of the previous row. So a quoted header starts no row
    unless its number fits.
    """
    rows: list[RenderedRow] = []
    lines: list[str] = []
    for line in text.split("\n"):
        match = _HEADER.fullmatch(line)
        if match is None or (rows and int(match[1]) != rows[-1].number + 1):
            lines.append(line)
            continue
        if rows:
            rows[-1] = replace(rows[-1], text="\n".join(lines[:-1] if lines and not lines[-1] else lines))
        rows.append(RenderedRow(int(match[1]), match[2], match[3], ""))
        lines = []
    if rows:
        rows[-1] = replace(rows[-1], text="\n".join(lines))
    return tuple(rows)


def _name_mark(row: RenderedRow) -> str:
    return "" if row.name is None else " " + row.name.replace("\n", " ")
