"""Rendered rows of groups that stand in no history."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize.segments import Redact, render_group
from context_summarize.types import Group, RenderedRow, Row


def render_groups(
    rows: Sequence[Row], groups: Sequence[Group], *, segment_tokens: int | None, redact: Redact | None = None
) -> tuple[RenderedRow, ...]:
    """The rendered rows of a run of groups, numbered from 1."""
    out: list[RenderedRow] = []
    for group in groups:
        if group.rendered:
            out += render_group(rows, group, number=len(out) + 1, segment_tokens=segment_tokens, redact=redact)
    return tuple(out)
