"""The tree of summaries behind a session's view, with the messages that they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from context_summarize import SummarizingContextManager
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, Summary, with_children
from context_summarize.core.rendering import render_group
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
class Snapshot:
    """The summaries shown and their sources."""

    nodes: tuple[SummaryNode, ...]
    """The summaries in the view, oldest first."""
    messages: tuple[RenderedRow, ...]
    """The messages that they stand for, whole and unredacted, numbered from 1."""


async def snapshot(manager: SummarizingContextManager) -> Snapshot:
    """The tree behind the view; texts of merged summaries are looked up in the store."""
    chat, store = manager.conversation, manager._services.store  # noqa: SLF001 - nothing else tells of the store
    below = [child.key for node in chat.view.nodes for child in with_children(node.children)]
    texts = await store.get(list(dict.fromkeys(below)))
    texts |= {item.node.key: item.summary for item in chat.view.shown}
    messages: list[RenderedRow] = []
    for ordinal in range(chat.view.frontier):
        group = chat.history.rendered_group(ordinal)
        messages += render_group(chat.history.rows, group, number=len(messages) + 1, segment_tokens=None)
    return Snapshot(tuple(_tree(chat.history, node, texts) for node in chat.view.nodes), tuple(messages))


def _tree(history: History, node: Node, texts: dict[str, Summary]) -> SummaryNode:
    first, last = history.message_range(node.first_group, node.end_group)
    children = tuple(_tree(history, child, texts) for child in node.children)
    return SummaryNode(node.key, node.level, first, last, node.is_partial, texts.get(node.key), children)
