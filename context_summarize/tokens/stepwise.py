"""Counting of long texts in short steps; the tokens of a text beyond a few megabytes are estimated from samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from context_summarize.background import Steps

PIECE_CHARS = 25_000
"""Longest piece that is counted in one step: at most 100 kB in UTF-8."""
EXACT_CHARS = 4_000_000
"""Longest text that is counted whole. No window holds a longer one, so an estimate does for it."""
RUN_CHARS = 512
"""Longest piece of a run without a break: at most 2 kB in UTF-8. A good place for a cut is looked for within it."""

_WHOLE_RUNS = PIECE_CHARS // RUN_CHARS * RUN_CHARS


def cut(text: str) -> Iterator[str]:
    """Pieces of at most `PIECE_CHARS`, cut where the tokenizer cuts too: after a newline, or else before a blank.

    A run without a break is cut at multiples of `RUN_CHARS`.
    """
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + PIECE_CHARS
        newline, blank = (text.rfind(mark, end - RUN_CHARS, end) for mark in "\n ")
        within_run = blank < 0 or text[end - RUN_CHARS : end].isspace()
        stop = start + _WHOLE_RUNS if within_run else blank
        stop = newline + 1 if newline >= 0 else stop
        yield text[start:stop]
        start = stop
    yield text[start:]


def count_steps(text: str, count: Callable[[str], int]) -> Steps[int]:
    """Tokens of a text, a piece a step; a text beyond `EXACT_CHARS` is estimated from pieces all over it."""
    if len(text) <= PIECE_CHARS:
        return count(text)
    total = 0
    if len(text) <= EXACT_CHARS:
        for piece in cut(text):
            total += count(piece)
            yield
        return total
    samples = EXACT_CHARS // PIECE_CHARS
    for at in range(samples):
        start = at * (len(text) - PIECE_CHARS) // (samples - 1)
        total += count(text[start : start + PIECE_CHARS])
        yield
    return -(-total * len(text) // EXACT_CHARS)
