"""What has no public face and tests look at all the same: rendered rows, and the view between two requests."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize import SummarizingContextManager
from context_summarize.core.entries import Group, Grouper
from context_summarize.core.log import Log
from context_summarize.core.view import nodes_of
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import Redact
from context_summarize.transcript.groups import PartRow


def grouped(raws: Sequence[JsonRow]) -> tuple[list[Group], list[Group]]:
    """Returns (closed groups, the open ones)."""
    grouper = Grouper()
    closed = [group for at, raw in enumerate(raws) for group in grouper.feed(at, analyse(normalise(raw)))]
    return closed, grouper.open_groups()


def rendered(raws: Sequence[JsonRow], *, redact: Redact | None = None) -> list[PartRow]:
    """Returns the rows as recall, the thread and fallbacks read them."""
    log = Log(len)
    for raw in raws:
        log.add(analyse(normalise(raw)))
    groups = [*map(log.rendered_group, range(len(log.rendered))), *log.open_groups]
    return [row for group in groups for row in log.read(group, redact)]


def shown_keys(manager: SummarizingContextManager) -> list[str]:
    """Returns the keys of the summaries that the next request shows if nothing is added."""
    return [node.key for node in nodes_of(manager.session.log, manager.session.cut)]
