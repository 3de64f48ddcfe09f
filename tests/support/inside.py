"""What has no public face and tests look at all the same: logs, groups, parts, and the view between two requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_summarize import SummarizingContextManager
from context_summarize.core.entries import Group
from context_summarize.core.log import Log
from context_summarize.core.view import nodes_of
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import Redact
from context_summarize.tokens.measure import Count
from context_summarize.transcript.groups import PartRow
from context_summarize.transcript.part import part_text


def log_of(raws: Sequence[JsonRow], count: Count = len) -> Log:
    """Returns the log of a conversation."""
    log = Log(count)
    for raw in raws:
        log.add(analyse(normalise(raw)))
    return log


def rendered(raws: Sequence[JsonRow], *, redact: Redact | None = None) -> list[PartRow]:
    """Returns the rows as recall, the thread and fallbacks read them."""
    log = log_of(raws)
    groups: list[Group] = [*map(log.rendered_group, range(len(log.rendered))), *log.open_groups]
    return [row for group in groups for row in log.read(group, redact)]


def text_of(raws: Sequence[JsonRow], segment: int = 1_000, redact: Redact | None = None, **around: Any) -> str:
    """Returns the text of a part that holds the closed groups of a conversation."""
    log = log_of(raws)
    groups = map(log.rendered_group, range(len(log.rendered)))
    return part_text([row for group in groups for row in log.read(group, redact)], segment, **around)


def shown_keys(manager: SummarizingContextManager) -> list[str]:
    """Returns the keys of the summaries that the next request shows if nothing is added."""
    return [node.key for node in nodes_of(manager.session.log, manager.session.cut)]
