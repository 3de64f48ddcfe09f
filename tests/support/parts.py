"""Parts of a conversation as their summariser reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_summarize.core.log import Log
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.redaction import Redact
from context_summarize.testing import JsonRow
from context_summarize.transcript.groups import PartRow
from context_summarize.transcript.part import part_text

SEGMENT = 1_000


def log_of(rows: Sequence[JsonRow]) -> Log:
    """The log of a conversation."""
    log = Log(len)
    for row in rows:
        log.add(analyse(normalise(row)))
    return log


def groups_of(rows: Sequence[JsonRow], redact: Redact | None = None) -> list[list[PartRow]]:
    """The closed groups of a conversation."""
    log = log_of(rows)
    return [log.read(log.rendered_group(ordinal), redact) for ordinal in range(len(log.rendered))]


def text_of(rows: Sequence[JsonRow], segment: int = SEGMENT, redact: Redact | None = None, **around: Any) -> str:
    """The text of a part that holds a whole conversation."""
    return part_text([row for group in groups_of(rows, redact) for row in group], segment, **around)
