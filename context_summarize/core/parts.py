"""The part of a log that one summary represents, as its summariser reads it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from context_summarize.core.groups import answered_calls
from context_summarize.core.log import Log
from context_summarize.transcript.context import ContextRow, before, context_text
from context_summarize.transcript.groups import PartRow, read_group
from context_summarize.transcript.part import part_text


def read(log: Log, ordinal: int, segment_tokens: int) -> list[PartRow]:
    """Returns the rows of one rendered group, redacted."""
    group = log.rendered_group(ordinal)
    answers = {at - group.start: calls for at, calls in answered_calls(group).items()}
    return read_group(log.rows[group.start : group.end], answers, group.missing, segment_tokens, log.redact)


def text_of(log: Log, first_group: int, groups: Sequence[Sequence[PartRow]], segment_tokens: int) -> str:
    """Returns the text of a part from its groups."""
    rows = [row for group in groups for row in group]
    return part_text(rows, segment_tokens, context_text(_before(log, first_group), 1))


def context_numbers(log: Log, first_group: int) -> list[int | None]:
    """Returns the message numbers of the rows that stand before a part."""
    return [log.number_of(one.row) for one in _before(log, first_group)]


def _before(log: Log, first_group: int) -> list[ContextRow]:
    users = log.users[: bisect_left(log.users, first_group)]
    requests = [log.rendered_group(ordinal).start for ordinal in users[-4:]]
    return before(log.rows, log.rendered_group(first_group).start, requests, log.redact)
