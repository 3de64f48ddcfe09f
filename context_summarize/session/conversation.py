"""The conversation that a request touches: one frozen value, swapped once; and the rows that a host hands over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from context_summarize.background import LONG, in_thread
from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder, derive_segment_tokens, derive_summary_tokens
from context_summarize.core.notes_log import NotesLog
from context_summarize.core.shown_groups import ShownGroups
from context_summarize.core.view_state import ViewState
from context_summarize.errors import MessageError
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow, Row
from context_summarize.redaction import Redact
from context_summarize.summaries.prompts import PromptSet
from context_summarize.tokens.measure import Count

_AT_ONCE = 50
"""Rows of a host that are checked before others have their turn: no thread reads what the host may change."""
_MOST_EARLIER = 8
"""Views that are kept so that compactions can be taken back; records know earlier ones."""
_LEAST_SEGMENT = 512
"""Segments of this length are cut in the smallest windows too."""


@dataclass(frozen=True, slots=True)
class Steered:
    """Where the user has put a session, beside its view."""

    pins: frozenset[int] = frozenset()
    """Rendered groups that stay verbatim from the next compaction on."""
    undone: tuple[str, ...] = ()
    """Hashes of the records of compactions that were taken back."""
    undone_at: int | None = None
    """Tokens of the view when a compaction was taken back, and none has followed; else None."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A history with its view. The history and its indexes grow at their ends; another history is another value."""

    history: History
    builder: NodeBuilder
    """Its segments and their nodes."""
    groups: ShownGroups
    """Its groups as a view shows them."""
    notes: NotesLog
    """What code knows of its summarised part."""
    view: ViewState = field(default_factory=ViewState)
    adopted: bool = False
    """True once recorded compactions have been looked for."""
    steered: Steered = Steered()
    earlier: tuple[ViewState, ...] = ()
    """The views before the last few compactions of this process, the oldest first: what can be taken back."""

    async def convert(self) -> None:
        """Convert the groups that have come since the last time; in a thread where that takes long."""
        await in_thread(self.groups.backlog(), self.groups.advance)

    async def advance(self) -> None:
        """Index what has come since the last time."""
        await self.convert()
        if self.builder.backlog() > LONG:
            ahead = self.builder.copy()
            await asyncio.to_thread(ahead.advance)
            self.builder.take(ahead)
        self.builder.advance()
        await in_thread(self.history.backlog(), self.history.advance)


def new_conversation(
    config: Config, prompts: PromptSet, redact: Redact | None, count: Count, *, recall: bool
) -> Conversation:
    """A conversation without rows; `recall`: frames and marks say how the model reads the originals."""
    history = History(recall=recall)
    builder = NodeBuilder(history, prompts.segment.hash, prompts.merge.hash, redact)
    notes = NotesLog(
        builder,
        redact,
        count,
        tools=config.action_tools or {},
        signs=prompts.rule_signs,
        heading=prompts.rules_heading,
    )
    return Conversation(history, builder, ShownGroups(history, count), notes)


def with_view(chat: Conversation, view: ViewState, count: Count, hides_system: bool) -> Conversation:
    """The conversation with a view that was adopted: earlier groups are neither counted nor converted."""
    first = chat.history.group_position(view.frontier_row)
    groups = ShownGroups(chat.history, count, hides_system=hides_system, first=first)
    return replace(chat, view=view, groups=groups, adopted=True)


def compacted(chat: Conversation, view: ViewState, record_hash: str | None) -> Conversation:
    """The conversation with the view of a compaction, whose record has this hash."""
    chat.builder.go_on_from(view.frontier)
    undone = tuple(hash_ for hash_ in chat.steered.undone if hash_ != record_hash)
    steered = replace(chat.steered, undone=undone, undone_at=None)
    return replace(chat, view=view, earlier=(*chat.earlier, chat.view)[-_MOST_EARLIER:], steered=steered)


def with_prompt(chat: Conversation, count: Count, hides_system: bool) -> Conversation:
    """The conversation for a session with or without a system prompt of its host's factory."""
    return replace(with_view(chat, chat.view, count, hides_system), adopted=chat.adopted)


def derive_sizes(chat: Conversation, config: Config, budget: int) -> None:
    """Fix the segment length at the first budget; derive it anew when it is too long for a later one."""
    sizes, given = chat.builder.segment_sizes, config.segment_tokens
    if sizes is not None and (given is not None or sizes[0] <= budget / 4 or sizes[0] <= _LEAST_SEGMENT):
        return
    segment = given or derive_segment_tokens(budget)
    chat.builder.start(segment, derive_summary_tokens(segment), chat.view.frontier)


def named(pins: Iterable[int], history: History) -> tuple[tuple[int, str], ...]:
    """Pinned groups by number and hash, so that they are found in an edited history."""
    return tuple((at, history.hash_of(at)) for at in sorted(pins))


def moved(pins: Iterable[tuple[int, str]], history: History) -> frozenset[int]:
    """These pinned groups in this history; those that are gone or changed are left out."""
    return frozenset(at for pin in pins if (at := history.find_group(*pin)) is not None)


# --- rows of a host -------------------------------------------------------------------------------------------------


async def checked_rows(messages: Any) -> list[JsonRow]:
    """Every row of a host, checked and copied.

    Raises:
        MessageError: it is no list of rows, or one of them cannot be kept; the text names it.
    """
    if isinstance(messages, str | bytes | dict) or not isinstance(messages, Iterable):
        raise MessageError(f"messages must be a list of messages, got {type(messages).__name__}")
    rows: list[JsonRow] = []
    for at, message in enumerate(messages, 1):
        try:
            rows.append(normalise(message))
        except MessageError as error:
            raise MessageError(f"message {at - 1}: {error}") from None
        if at % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return rows


def common_prefix(ours: Sequence[Row], rows: Sequence[JsonRow]) -> int:
    """How many rows at the start are equal."""
    pairs = enumerate(zip(ours, rows, strict=False))
    return next((at for at, (row, raw) in pairs if row.raw != raw), min(len(ours), len(rows)))


def fill(
    fresh: Conversation,
    same: Sequence[tuple[Row, int]],
    others: Iterable[JsonRow],
    pins: Sequence[tuple[int, str]],
) -> Conversation:
    """A fresh conversation with rows that are known already, with their sizes, and others after them.

    Args:
        pins: pinned groups by number and hash.
    """
    for row, tokens in same:
        fresh.history.add(row, tokens)
    for raw in others:
        fresh.history.add(analyse(raw))
    return replace(fresh, steered=replace(fresh.steered, pins=moved(pins, fresh.history)))
