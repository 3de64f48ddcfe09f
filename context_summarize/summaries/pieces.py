"""Splits a large input into pieces that each fit one request, and keeps the answers to finished ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from context_summarize.tokens.counter import count_long
from context_summarize.transcript.escaping import after_cut, left_out_note

_MOST = 9
"""Pieces of one part: with the call that joins them, at most ten calls."""


def pieces_of(parts: Sequence[str], limit: int, count: Callable[[str], int]) -> list[str]:
    """The parts in few runs of similar size, each within `limit` tokens. A part that alone does not fit is split.

    Of a part that would take more than nine pieces, head, tail and evenly cut pieces between them are kept, with notes
    of what was left out.
    """
    sized: list[tuple[str, int]] = []
    for part in parts:
        size = count_long(f"{part}\n\n", count)
        if size > limit * _MOST:
            part = evenly_cut(part, max(1, len(part) * limit // size * 9 // 10))
            size = count_long(f"{part}\n\n", count)
        sized += _fragments(part, size, limit, count)
    total = sum(size for _, size in sized)
    share = total / max(1, -(-total // limit))
    runs: list[list[str]] = [[]]
    done = length = 0
    for fragment, size in sized:
        # A run ends where its size is nearest to its share of the whole, and before it would exceed the limit.
        if runs[-1] and (length + size > limit or done + size / 2 > share * len(runs)):
            runs.append([])
            length = 0
        runs[-1].append(fragment)
        length += size
        done += size
    return ["\n\n".join(run) for run in runs if run]


def evenly_cut(text: str, size: int) -> str:
    """Pieces of so many characters from head to tail, and between them notes of what was left out."""
    out: list[str] = []
    end = 0
    for at in range(_MOST - 1):
        start = at * (len(text) - size) // (_MOST - 2)
        if start > end:
            out.append(left_out_note(start - end, len(text)))
        first = max(start, end)
        end = start + size
        out.append(after_cut(text[:end], first) if first else text[:end])
    return "\n".join(out)


def _fragments(part: str, size: int, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """A part with its size, split in halves again and again until each is within the limit."""
    if size <= limit or len(part) < 2:
        return [(part, size)]
    middle = len(part) // 2
    out: list[tuple[str, int]] = []
    for half in (part[:middle], after_cut(part, middle)):
        out += _fragments(half, count_long(f"{half}\n\n", count), limit, count)
    return out


class KeptPieces:
    """Answers to finished pieces of inputs whose summary could not be finished: the next attempt goes on after them.

    In memory only; the input that was worked on longest ago is let go of first.
    """

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._kept: dict[str, dict[str, str]] = {}

    def find(self, key: str, request: str) -> str | None:
        """The answer to a request, if it was kept for this key."""
        return self._kept.get(key, {}).get(_digest(request))

    def keep(self, key: str, request: str, answer: str) -> None:
        """Keep the answer to a piece."""
        found = self._kept.pop(key, {})
        self._kept[key] = found  # the newest key stands last
        found[_digest(request)] = answer
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > self._most:
            self.drop(next(iter(self._kept)))

    def drop(self, key: str) -> None:
        """Let go of what was kept for a key."""
        self._kept.pop(key, None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
