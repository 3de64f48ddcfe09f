"""What has no public face and tests look at all the same: rendered rows, and the view between two requests."""

from __future__ import annotations

from collections.abc import Sequence

from context_summarize import SummarizingContextManager
from context_summarize.core.groups import Group, Grouper, render_group
from context_summarize.core.view import nodes_of
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import Redact
from context_summarize.transcript.rendered import RenderedRow


def grouped(raws: Sequence[JsonRow]) -> tuple[list[Group], list[Group]]:
    """Returns (closed groups, the open ones)."""
    grouper = Grouper()
    closed = [group for at, raw in enumerate(raws) for group in grouper.feed(at, analyse(normalise(raw)))]
    return closed, grouper.open_groups()


def rendered(raws: Sequence[JsonRow], *, redact: Redact | None = None) -> list[RenderedRow]:
    """Returns the rows as recall and the thread read them, numbered from 1."""
    rows = [analyse(normalise(raw)) for raw in raws]
    first_user = next((row.raw for row in rows if row.user), None)
    closed, still_open = grouped(raws)
    found: list[RenderedRow] = []
    for group in [*closed, *still_open]:
        if group.rendered:
            number = len(found) + 1
            found += render_group(rows, group, number=number, redact=redact, first_user=first_user)
    return found


def shown_keys(manager: SummarizingContextManager) -> list[str]:
    """Returns the keys of the summaries that the next request shows if nothing is added."""
    return [node.key for node in nodes_of(manager.session.log, manager.session.cut)]
