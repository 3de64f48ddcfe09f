"""The marks of messages, `[m3]`: in a part's headers, in its summary, and with the session's numbers in what is shown.

A mark is a bracket, a letter and a number: `m` for a message of the part, `b` for one before or behind it. Plain `m3`
would be unsafe, because it is a processor or a variable. The bracket makes it a citation, which models copy as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARKS = re.compile(r" ?\[([mb]\d{1,9}(?:(?:, ?|; ?| ?[-–] ?| and | to )[mb]?\d{1,9}\b)*)\b(\]?)")
"""Marks in one bracket, which may go on behind them: `[m3]`, `[m3, b1]`, `[m5-7]`, `[m3 after the fix]`."""
_ONE = re.compile(r"([mb]?)(\d+)")


def mark(number: int) -> str:
    """Returns the mark of a message."""
    return f"[m{number}]"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Returns `1 row` or `1,200 rows`; `many` is the plural if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def renumber(text: str, first: int, count: int, context: Sequence[str] = ()) -> str:
    """Returns a summary whose marks count from another message. Marks of no message are left out.

    Args:
        first: the new number of the part's first message.
        count: how many messages the part has; 0 to leave out all marks.
        context: the new mark of each row around the part, `b1` first, such as "m7"; "" for one without.
    """

    def of(letter: str, place: int) -> str:
        if letter == "m":
            return f"m{first + place}" if 0 <= place < count else ""
        return context[place] if 0 <= place < len(context) else ""

    def renumbered(found: re.Match[str]) -> str:
        out, letter, at = "", "m", 0
        for one in _ONE.finditer(found[1]):
            letter = one[1] or letter
            if new := of(letter, int(one[2]) - 1):
                out += f"{found[1][at : one.start()] if out else ''}{new}"
            at = one.end()
        blank = " " if found[0][0] == " " else ""
        return f"{blank}[{out}{found[2]}" if out or not found[2] else ""

    return _MARKS.sub(renumbered, text)
