"""Fallback summaries: code quotes the user's messages and the agent's closing words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, groupby

from context_summarize.notes.prose import GAP, cut, flat, sentences_of
from context_summarize.tokens.measure import Count
from context_summarize.transcript.rendered import RenderedRow, may_be_call

FALLBACK_LINE = "Fallback summary by code: no model summary was available."
USER, AGENT = "The user: ", "The agent: "
"""The beginning of a line of each."""
_LENGTHS = (640, 320)
"""Characters of the longest line: if all lines fit, and if some are left out."""


def fallback_text(rows: Sequence[RenderedRow], max_tokens: int, count: Count) -> str:
    """Returns a summary of at most `max_tokens` without a model."""
    return _fitted([list(_said(rows))], max_tokens, count)


def join_fallbacks(texts: Sequence[str], max_tokens: int, count: Count) -> str:
    """Returns one text of at most `max_tokens` from those of neighbouring nodes, oldest first; both ends of each."""
    parts = [[line for line in text.split("\n") if line not in ("", FALLBACK_LINE, GAP)] for text in texts]
    return _fitted(parts, max_tokens, count)


def _said(rows: Sequence[RenderedRow]) -> Iterator[str]:
    """Yields a line for each message of the user, and one for the agent's last words before the next message."""
    concluded = ""
    for row in rows:
        if row.role == "user":
            if concluded:
                yield f"{AGENT}{concluded}"
                concluded = ""
            if said := row.said.strip():
                yield f"{USER}{said}"
        elif row.role == "assistant":
            concluded = "\n".join(line for line in row.text.split("\n") if not may_be_call(line)).strip() or concluded
    if concluded:
        yield f"{AGENT}{concluded}"


def _fitted(parts: Sequence[Sequence[str]], max_tokens: int, count: Count) -> str:
    """Returns all lines if they fit; else the user's first, from both ends of each part inwards, newest part first."""
    lines: list[str] = []
    for most in _LENGTHS:
        short = [[*dict.fromkeys(_shortened(line, most) for line in part)] for part in parts]
        lines = [*chain.from_iterable(short)]
        if count(text := "\n".join([FALLBACK_LINE, *lines])) <= max_tokens:
            return text
    within = [min(at, len(part) - 1 - at) for part in short for at in range(len(part))]
    by_agent = [line.startswith(AGENT) for line in lines]
    taken: list[int] = []
    room = max_tokens - count(FALLBACK_LINE)
    for at in sorted(range(len(lines)), key=lambda at: (by_agent[at], within[at], -at)):
        if (size := count(lines[at]) + 1) <= room:
            taken.append(at)
            room -= size
    while taken and count(text := _with_gaps(lines, set(taken))) > max_tokens:
        taken.pop()
    if taken:
        return text
    return FALLBACK_LINE if room >= 0 else ""


def _with_gaps(lines: Sequence[str], taken: set[int]) -> str:
    shown = [lines[at] if at in taken else GAP for at in range(len(lines))]
    return "\n".join([FALLBACK_LINE, *(line for line, _ in groupby(shown))])


def _shortened(text: str, most: int) -> str:
    """Returns the text on one line; if that has more than `most` characters, whole sentences from both ends.

    A first sentence that is too long is cut between words.
    """
    line = flat(text)
    if len(line) <= most:
        return line
    said = [*sentences_of(text)]
    head = _within(said, most * 2 // 3)
    if not head:
        return cut(line, most)
    tail = _within(said[: len(head) - 1 : -1], most - len(" ".join(head)))
    return " ".join([*head, GAP, *reversed(tail)]).replace(f"{GAP} {GAP}", GAP)


def _within(texts: Sequence[str], most: int) -> list[str]:
    """Returns as many of the first texts as have at most so many characters together."""
    sizes = accumulate(len(text) + 1 for text in texts)
    return [text for text, size in zip(texts, sizes, strict=True) if size <= most]
