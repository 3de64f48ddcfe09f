"""Splits a large input into pieces that each fit one request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from context_summarize.transcript.marks import after_cut


def cut_pieces(parts: Sequence[str], limit: int, count: Callable[[str], int]) -> list[str]:
    """The parts in few runs of similar size, each within `limit` tokens. A part that alone does not fit is split."""
    sized = [fragment for part in parts for fragment in _fragments(part, limit, count)]
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


def _fragments(part: str, limit: int, count: Callable[[str], int]) -> list[tuple[str, int]]:
    """A part with its size, split in halves again and again until each is within the limit."""
    size = count(f"{part}\n\n")
    if size <= limit or len(part) < 2:
        return [(part, size)]
    middle = len(part) // 2
    return [*_fragments(part[:middle], limit, count), *_fragments(after_cut(part, middle), limit, count)]
