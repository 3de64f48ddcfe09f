"""Fallback summaries: what the user asked and what the agent concluded, picked by code alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from context_summarize.tokens.measure import Count
from context_summarize.transcript.calls import may_be_call
from context_summarize.transcript.rows import RenderedRow

FALLBACK_LINE = "Fallback summary by code: no model summary was available."
_LEFT_OUT = "[…]"
_HEAD, _TAIL = 220, 100
"""Characters kept from the start and the end of a long message."""


def fallback_text(rows: Sequence[RenderedRow], max_tokens: int, count: Count) -> str:
    """A summary of at most `max_tokens` without a model."""
    return _fitted(list(_said(rows)), max_tokens, count)


def join_fallbacks(texts: Sequence[str], max_tokens: int, count: Count) -> str:
    """The texts of neighbouring nodes, oldest first, as one of at most `max_tokens`; none of them is cut to nothing."""
    parts = [[line for line in text.split("\n") if line not in ("", FALLBACK_LINE, _LEFT_OUT)] for text in texts]
    whole = list(chain.from_iterable(parts))
    if count("\n".join([FALLBACK_LINE, *whole])) <= max_tokens:
        return "\n".join([FALLBACK_LINE, *whole])
    share = (max_tokens - count(FALLBACK_LINE)) // max(1, len(parts))
    kept = [line for part in parts for line in _ends_of(part, share, count)]
    return _fitted(kept, max_tokens, count)


def _said(rows: Sequence[RenderedRow]) -> Iterator[str]:
    """A line for each message of the user, and for the last words of the agent before the next one."""
    concluded = ""
    for row in rows:
        if row.role == "user":
            if concluded:
                yield f"Agent: {concluded}"
                concluded = ""
            if said := _short(row.text):
                yield f"User: {said}"
        elif row.role == "assistant":
            concluded = _short("\n".join(line for line in row.text.split("\n") if not may_be_call(line))) or concluded
    if concluded:
        yield f"Agent: {concluded}"


def _short(text: str) -> str:
    """The text on one line, or its start and its end."""
    flat = " ".join(text.split())
    if len(flat) <= _HEAD + len(_LEFT_OUT) + _TAIL + 2:
        return flat
    head = flat[:_HEAD].rpartition(" ")[0] or flat[:_HEAD]
    tail = flat[-_TAIL:].partition(" ")[2] or flat[-_TAIL:]
    return f"{head} {_LEFT_OUT} {tail}"


def _fitted(lines: list[str], max_tokens: int, count: Count) -> str:
    text = "\n".join([FALLBACK_LINE, *lines])
    room = max_tokens
    while count(text) > max_tokens and room > 0:
        room = room * 9 // 10 - 1
        text = "\n".join([FALLBACK_LINE, *_ends_of(lines, room - count(FALLBACK_LINE), count)])
    return text if count(text) <= max_tokens else _cut(text, max_tokens, count)


def _ends_of(lines: Sequence[str], room: int, count: Count) -> list[str]:
    """The first and the last lines that fit, taken in turn from both ends, with a mark where others stood."""
    sizes = [count(line) + 1 for line in lines]
    if sum(sizes) <= room:
        return list(lines)
    order = chain.from_iterable(zip_longest(range(len(lines) - 1, -1, -1), range(len(lines))))
    kept: set[int] = set()
    room -= count(_LEFT_OUT) + 1
    for at in order:
        if len(kept) == len(lines) or at is None:
            break
        if at not in kept and sizes[at] <= room:
            kept.add(at)
            room -= sizes[at]
    head = [line for at, line in enumerate(lines) if at in kept and at < len(lines) // 2]
    tail = [line for at, line in enumerate(lines) if at in kept and at >= len(lines) // 2]
    return [*head, _LEFT_OUT, *tail] if kept else []


def _cut(text: str, room: int, count: Count) -> str:
    while text and (size := count(text)) > room:
        text = text[: min(len(text) - 1, max(len(text) * room // size, 0))]
    return text
