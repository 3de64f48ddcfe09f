"""The marks of messages, `[m3]`: in a part's headers, in its summary, and with the session's numbers in what is shown.

A mark is a bracket, a letter and a number: `m` for a message of the part, `b` for one before or behind it. Plain `m3`
would be unsafe, because it is a processor, a type of machine, a variable. The bracket makes it a citation, which models
copy as it is, and in texts of others a blank divides such a bracket from its letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from context_summarize.transcript.escaping import INVISIBLE

_LIKE_MARK = re.compile(rf"[\[\uff3b\u3010\u3014](?=[{INVISIBLE}]*[mb\uff42\uff4d][{INVISIBLE}]*\d)")
_MARKS = re.compile(r" ?\[([mb]\d{1,9}(?:(?:, ?|; ?| ?[-–] ?| and | to )[mb]?\d{1,9}\b)*)\b(\]?)")
"""Marks in one bracket, which may go on behind them: `[m3]`, `[m3, b1]`, `[m5-7]`, `[m3 after the fix]`."""
_ONE = re.compile(r"([mb]?)(\d+)")


def mark(number: int) -> str:
    """Returns the mark of a message."""
    return f"[m{number}]"


def without_marks(text: str) -> str:
    """Returns a text of others in which nothing is a mark: there a blank follows the bracket."""
    return _LIKE_MARK.sub(r"\g<0> ", text)


def renumber(text: str, first: int, count: int, context: Sequence[int | None] = ()) -> str:
    """Returns a summary whose marks count from another message. Marks of no message are left out.

    To show a summary, give the session's numbers. To merge it, give numbers that count from the merge's first message.

    Args:
        first: the new number of the part's first message.
        count: how many messages the part has.
        context: the new number of each row around the part, `b1` first; None for one without, or below 1.
    """
    places = {"m": range(first, first + count), "b": context}
    return _MARKS.sub(partial(_renumbered, places), text)


def _renumbered(places: dict[str, Sequence[int | None]], found: re.Match[str]) -> str:
    out, letter, at = "", "m", 0
    for one in _ONE.finditer(found[1]):
        letter = one[1] or letter
        place, numbers = int(one[2]) - 1, places[letter]
        new = numbers[place] if 0 <= place < len(numbers) else None
        if new is not None and new > 0:
            out += f"{found[1][at : one.start()] if out else ''}m{new}"
        at = one.end()
    blank = " " if found[0][0] == " " else ""
    if not out and found[2]:
        return ""
    return f"{blank}[{out}{found[2]}"
