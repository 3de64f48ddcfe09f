"""Fallback summaries: what the user asked and what the agent concluded, picked by code alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from context_summarize.notes.sentences import ends_of
from context_summarize.tokens.measure import Count
from context_summarize.transcript.rows import RenderedRow, may_be_call

FALLBACK_LINE = "Fallback summary by code: no model summary was available."
_LEFT_OUT = "[…]"
_LENGTHS = (640, 320, 160, 80)
"""Characters of a line; the longest at which all lines fit, and the shortest where some are left out."""


def fallback_text(rows: Sequence[RenderedRow], max_tokens: int, count: Count) -> str:
    """A summary of at most `max_tokens` without a model."""
    return _fitted([list(_said(rows))], max_tokens, count)


def join_fallbacks(texts: Sequence[str], max_tokens: int, count: Count) -> str:
    """The texts of neighbouring nodes, oldest first, as one of at most `max_tokens`, with the ends of each."""
    parts = [[line for line in text.split("\n") if line not in ("", FALLBACK_LINE, _LEFT_OUT)] for text in texts]
    return _fitted(parts, max_tokens, count)


def _said(rows: Sequence[RenderedRow]) -> Iterator[str]:
    """A line for each message of the user, and for the last words of the agent before the next one."""
    concluded = ""
    for row in rows:
        if row.role == "user":
            if concluded:
                yield f"The agent: {concluded}"
                concluded = ""
            if said := " ".join(row.text.split()):
                yield f"The user: {said}"
        elif row.role == "assistant":
            said = " ".join(line for line in row.text.split("\n") if not may_be_call(line))
            concluded = " ".join(said.split()) or concluded
    if concluded:
        yield f"The agent: {concluded}"


def _fitted(parts: Sequence[Sequence[str]], max_tokens: int, count: Count) -> str:
    """All lines, as long as they fit; else short ones, from both ends of each part inwards, the newest part first."""
    lines: list[str] = []
    for most in _LENGTHS:
        short = [dict.fromkeys(ends_of(line, most) for line in part) for part in parts]
        lines = list(chain.from_iterable(short))
        if count(text := "\n".join([FALLBACK_LINE, *lines])) <= max_tokens:
            return text
    within = [min(at, len(part) - 1 - at) for part in short for at in range(len(part))]
    taken: list[int] = []
    room = max_tokens - count(FALLBACK_LINE)
    for at in sorted(range(len(lines)), key=lambda at: (within[at], -at)):
        if (size := count(lines[at]) + 1) <= room:
            taken.append(at)
            room -= size
    while taken and count(text := _with_gaps(lines, set(taken))) > max_tokens:
        taken.pop()
    return text if taken else FALLBACK_LINE if room >= 0 else ""


def _with_gaps(lines: Sequence[str], taken: set[int]) -> str:
    told = [lines[at] if at in taken else _LEFT_OUT for at in range(len(lines))]
    return "\n".join([FALLBACK_LINE, *(line for line, _ in groupby(told))])
