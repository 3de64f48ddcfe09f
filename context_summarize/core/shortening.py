"""Shortens rows of a draft: long tool results, and, if a view does not fit otherwise, any rows, longest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from context_summarize.core.draft import Draft, Scale
from context_summarize.core.short_rows import HARD_FLOOR, short_length
from context_summarize.messages.reading import is_hook
from context_summarize.messages.rows import SYSTEM_ROLES

SLACK = 0.9
"""If rows must be shortened to fit, this share of the budget is aimed at, so that the next row still fits."""


def shorten_results(scale: Scale, draft: Draft, keep_recent: int, longest: int | None) -> Draft:
    """The draft with tool results above `longest` tokens shortened, those of the newest `keep_recent` rows aside."""
    if longest is None:
        return draft
    scene = scale.scene
    found, pinned = dict(draft.shortened), scale.pinned_rows(draft)
    for index, tokens in scene.groups.results(scene.view.frontier_row, len(scene.history) - keep_recent):
        if index in pinned:
            continue
        keep = found.get(index)
        size = tokens if keep is None or tokens <= keep else scene.groups.short_size(index, keep)
        if size > longest:
            found[index] = short_length(longest)
    return replace(draft, shortened=found)


def shorten_longest(scale: Scale, draft: Draft) -> Draft:
    """The draft with rows shortened, longest first, until it fits: all rows above one level are cut to that level."""
    room = scale.scene.limits.view_room
    for aim in (SLACK, 0.8, 0.6, 0.4, 0.2, 0.0):
        sizes = _shortenable(scale, draft)
        fixed = scale.size(draft) - sum(sizes.values())
        level = max(HARD_FLOOR, _water_level(list(sizes.values()), int(aim * room) - fixed))
        cut = {index: level for index, size in sizes.items() if size > level}
        draft = replace(draft, shortened={**draft.shortened, **cut})
        if scale.size(draft) <= room:
            break
    return draft


def _shortenable(scale: Scale, draft: Draft) -> dict[int, int]:
    """Sizes of all rows of the view but the host's system rows: half an instruction is worse than none."""
    groups = scale.scene.groups
    shortened = scale.shortened(draft)
    sizes: dict[int, int] = {}
    for entry in (entry for group in scale.shown(draft) for entry in group.entries):
        if entry.origin is None or _is_host_system(scale, entry.origin):
            continue
        keep = shortened.get(entry.origin)
        whole = keep is None or entry.tokens <= keep
        sizes[entry.origin] = entry.tokens if whole else groups.short_size(entry.origin, keep or 0)
    return sizes


def _is_host_system(scale: Scale, index: int) -> bool:
    row = scale.scene.history.rows[index]
    return row.role in SYSTEM_ROLES and not is_hook(row.raw) and not row.ephemeral


def _water_level(sizes: Sequence[int], room: int) -> int:
    """The largest level at which the sum of min(size, level) is within the room."""
    low, high = 0, max(sizes, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
