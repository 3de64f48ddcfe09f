"""The tree of summaries behind a session's view, with the messages that they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from context_summarize import SummarizingContextManager
from context_summarize.core.nodes import Node, Summary, with_children
from context_summarize.session.conversation import Conversation
from context_summarize.transcript.rendered import RenderedRow


@dataclass(frozen=True, slots=True)
class SummaryNode:
    """One summary of the tree, with those that it was joined from."""

    key: str
    level: int
    first: int
    last: int
    """The messages it stands for, counted from 1 as its frame counts them."""
    rest: bool
    """True for the segment that a compaction has ended before it was full; cutting goes on behind it."""
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
    chat, store = manager.conversation, manager._current.services.store  # noqa: SLF001 - nothing else tells of the store
    below = [child.key for node in chat.view.nodes for child in with_children(node.children)]
    texts = await store.get(list(dict.fromkeys(below)))
    texts |= {item.node.key: item.summary for item in chat.view.shown}
    messages: list[RenderedRow] = []
    for ordinal in range(chat.view.frontier):
        group = chat.log.rendered_group(ordinal)
        messages += chat.log.render(group, number=len(messages) + 1)
    return Snapshot(tuple(_tree(chat, node, texts) for node in chat.view.nodes), tuple(messages))


def _tree(chat: Conversation, node: Node, texts: dict[str, Summary]) -> SummaryNode:
    first, last = chat.log.message_range(node.first_group, node.end_group)
    is_rest = not node.children and chat.segments is not None and node.end_group == chat.segments.first_group
    children = tuple(_tree(chat, child, texts) for child in node.children)
    return SummaryNode(node.key, node.level, first, last, is_rest, texts.get(node.key), children)
