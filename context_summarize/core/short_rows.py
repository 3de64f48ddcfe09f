"""Shortens a view row to a number of tokens, with a note of what is gone. Pure."""

from __future__ import annotations

from context_summarize.messages.rows import JsonRow
from context_summarize.messages.shortening import cut_to_note, shortened_to
from context_summarize.tokens.measure import Count, measure

HARD_FLOOR = 24
"""Tokens below which no row is shortened further."""


def short_length(longest: int) -> int:
    """Tokens that a result keeps which is longer than `longest`."""
    return max(HARD_FLOOR, longest // 4)


def shortened_row(row: JsonRow, size: int, keep: int, count: Count, hint: str) -> tuple[JsonRow, int]:
    """A copy of a view row of `size` tokens cut to about `keep`, and its tokens: head and tail, a note of what is gone.

    `hint` ends the note. What cannot be cut to that size by halves (many short texts, arguments of many fields) is cut
    to a note alone.
    """
    if size <= keep:
        return row, size
    share = keep / size
    for _ in range(4):
        out = shortened_to(row, share, hint)
        tokens = measure(out, count)
        if tokens <= keep:
            return out, tokens
        share *= 0.6
    hard = cut_to_note(row)
    least = measure(hard, count)
    return (hard, least) if least < tokens else (out, tokens)
