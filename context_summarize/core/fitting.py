"""Makes a view fit: a ladder of rungs, each a little worse, until the budget holds."""

from __future__ import annotations

from dataclasses import replace

from context_summarize.core.draft import Draft, Scale
from context_summarize.core.merging import merged
from context_summarize.core.shortening import shorten_longest, shorten_results
from context_summarize.core.summarising import summarised, with_rest


def fitted(scale: Scale, draft: Draft) -> Draft:
    """The draft made to fit: summarise all, a rest, halve keep_recent, shorten any row, one-line nodes."""
    limits = scale.scene.limits
    keep = limits.keep_recent
    while True:
        [draft] = summarised(scale, draft, keep, [limits.view_room])
        if scale.size(draft) <= limits.view_room:
            return draft
        draft = with_rest(scale, draft, keep)
        draft = replace(draft, nodes=merged(scale, draft.nodes))
        if scale.size(draft) <= limits.view_room:
            return draft
        if keep == 0:
            break
        keep //= 2
        draft = shorten_results(scale, replace(draft, level=3), keep, limits.shorten_above)
    draft = shorten_longest(scale, replace(draft, level=4))
    while scale.size(draft) > limits.view_room and draft.lines < len(draft.nodes):
        draft = replace(draft, level=5, lines=draft.lines + 1)
    return draft
