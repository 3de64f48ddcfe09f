"""Diffs of old and new texts by lines, in linear time but for one sort."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

_CONTEXT = 2
"""Unchanged lines that a diff shows before and behind a changed one."""


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields each line with its sign: " " in both, "-" in the old text alone, "+" in the new text alone."""
    at_old = at_new = 0
    for next_old, next_new in [*_anchors(old, new), (len(old), len(new))]:
        yield from _between(old[at_old:next_old], new[at_new:next_new])
        if next_old < len(old):
            yield " ", old[next_old]
        at_old, at_new = next_old + 1, next_new + 1


def diff(old: str, new: str) -> list[str]:
    """Returns the lines of a diff: each changed line, with the unchanged lines near it; `@@` stands for the others."""
    lines = [*changes(old.split("\n") if old else (), new.split("\n") if new else ())]
    changed = [at for at, (sign, _) in enumerate(lines) if sign != " "]
    near = {at + step for at in changed for step in range(-_CONTEXT, _CONTEXT + 1)}
    out: list[str] = []
    for at, (sign, line) in enumerate(lines):
        if at in near:
            out.append(sign + line)
        elif out and out[-1] != "@@":
            out.append("@@")
    return out[:-1] if out[-1:] == ["@@"] else out


def _between(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the lines between two anchors: what both begin and end with, and between that all others."""
    shorter = min(len(old), len(new))
    head = sum(1 for _ in takewhile(lambda at: old[at] == new[at], range(shorter)))
    tail = sum(1 for _ in takewhile(lambda at: old[-1 - at] == new[-1 - at], range(shorter - head)))
    yield from ((" ", line) for line in old[:head])
    yield from (("-", line) for line in old[head : len(old) - tail])
    yield from (("+", line) for line in new[head : len(new) - tail])
    yield from ((" ", line) for line in old[len(old) - tail :])


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the places of lines that both texts have once, as many as keep their order."""
    counts, others = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new)}
    pairs = [(at, places[line]) for at, line in enumerate(old) if counts[line] == 1 == others[line]]
    ends, tops, before = list[int](), list[int](), list[int]()  # patience: of the best chain of each length its end
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1], tops[length : length + 1] = [place], [number]
        before.append(tops[length - 1] if length else -1)
    chain, at = list[tuple[int, int]](), tops[-1] if tops else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
