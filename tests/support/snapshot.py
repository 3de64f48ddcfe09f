"""What a session holds at a moment, as plain data: the tree of summaries, their sources, where view rows come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from context_summarize import SummarizingContextManager
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, Summary, with_children
from context_summarize.core.rendering import render_group
from context_summarize.core.shown_groups import Entry
from context_summarize.messages.rows import SOURCE, JsonRow
from context_summarize.session.conversation import Conversation
from context_summarize.tokens.measure import Count
from context_summarize.transcript.rows import RenderedRow


@dataclass(frozen=True, slots=True)
class SummaryNode:
    """One summary of the tree, with those that it was joined from."""

    key: str
    level: int
    first: int
    last: int
    """The messages it stands for, counted from 1 as its frame counts them."""
    rest: bool
    """True when it stands for a run that is not (yet) a regular segment."""
    summary: Summary | None
    """None where its text is not kept: a fallback that went into a merge, or one that the store has dropped."""
    children: tuple[SummaryNode, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewOrigin:
    """Where one row of a view comes from."""

    row: int | None = None
    """Row of the history, counted from 1; None for a summary, and for a row made up to keep the view valid."""
    whole_tokens: int | None = None
    """Size of the original where the view shows it shortened; else None."""
    key: str | None = None
    """Key of the summary that the row is."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The summaries shown and their sources."""

    nodes: tuple[SummaryNode, ...]
    """The summaries in the view, oldest first."""
    messages: tuple[RenderedRow, ...]
    """The messages that they stand for, whole and unredacted, numbered from 1."""
    origins: tuple[ViewOrigin, ...]
    """One for each row of the view."""


async def snapshot(manager: SummarizingContextManager, view: Sequence[JsonRow] = ()) -> Snapshot:
    """The tree behind `view`, the rows served last; texts of merged summaries are looked up in the store."""
    chat, services = manager.conversation, manager._services  # noqa: SLF001 - nothing else tells of the store
    shown = chat.view.nodes
    below = [child.key for node in shown for child in with_children(node.children)]
    texts = await services.store.get(list(dict.fromkeys(below)))
    texts |= {item.node.key: item.summary for item in chat.view.shown}
    return Snapshot(
        nodes=tuple(_tree(chat.history, node, texts) for node in shown),
        messages=_messages(chat.history, chat.view.frontier),
        origins=tuple(_origins(chat, view, services.count)),
    )


def _messages(history: History, end_group: int) -> tuple[RenderedRow, ...]:
    """The rendered rows of the groups [0, end_group), whole and unredacted, numbered from 1."""
    out: list[RenderedRow] = []
    for group in map(history.rendered_group, range(end_group)):
        out += render_group(history.rows, group, number=len(out) + 1, segment_tokens=None)
    return tuple(out)


def _tree(history: History, node: Node, texts: dict[str, Summary]) -> SummaryNode:
    first, last = history.message_range(node.first_group, node.end_group)
    children = tuple(_tree(history, child, texts) for child in node.children)
    return SummaryNode(node.key, node.level, first, last, node.is_rest, texts.get(node.key), children)


def _origins(chat: Conversation, view: Sequence[JsonRow], count: Count) -> Iterator[ViewOrigin]:
    """Both the view and the entries are in the order of the history, so that one walk over both finds each row."""
    entries = list(view_entries(chat, count))
    at = 0
    for row in view:
        marks = row.get("metadata")
        if isinstance(marks, dict) and marks.get("source") == SOURCE:
            yield ViewOrigin(key=marks.get("key"))
            continue
        found = next((place for place in range(at, len(entries)) if entries[place].row == row), None)
        if found is None:
            yield ViewOrigin()
            continue
        at = found + 1
        origin, tokens = entries[found].origin, entries[found].tokens
        if origin is None:
            yield ViewOrigin()
        else:
            whole = chat.history.tokens[origin]
            yield ViewOrigin(origin + 1, whole if tokens < whole else None)


def view_entries(chat: Conversation, count: Count) -> Iterator[Entry]:
    """Every row that the view can show verbatim or shortened, in its order: pins, then the verbatim part."""
    groups, state = chat.groups, chat.view
    for group in (*groups.pins(state), *groups.from_row(state.frontier_row)):
        yield from groups.entries(group, state)
