"""Rendered rows of groups that stand in no history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_summarize.core.groups import Group, render_group
from context_summarize.messages.rows import Row
from context_summarize.redaction import Redact
from context_summarize.transcript.rendered import RenderedRow


def render_groups(
    rows: Sequence[Row], groups: Sequence[Group], *, segment_tokens: int | None, redact: Redact | None = None
) -> tuple[RenderedRow, ...]:
    """The rendered rows of a run of groups, numbered from 1."""
    out: list[RenderedRow] = []
    first_user = next((row.raw for row in rows if row.user), None)
    options: dict[str, Any] = {"segment_tokens": segment_tokens, "redact": redact, "first_user": first_user}
    for group in groups:
        if group.rendered:
            out += render_group(rows, group, number=len(out) + 1, **options)
    return tuple(out)
