"""Inspects a recording without playing it: what it holds, and the segments that a session of it is cut into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from context_summarize.config import Config
from context_summarize.core.history import History
from context_summarize.core.node_builder import NodeBuilder, derive_segment_tokens, derive_summary_tokens
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.redaction import build_redactor
from context_summarize.replay.result import message_numbers, named
from context_summarize.stores import open_store
from context_summarize.summaries.prompts import load_prompts
from context_summarize.tokens.counter import loaded_counter
from context_summarize.tokens.measure import measure

Line: TypeAlias = dict[str, object]
"""A line of a table, by its columns."""
_LARGEST = 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a recording holds. Sizes are in tokens."""

    rows: int
    messages: int
    """Rows that a summariser reads; the other rows belong to the host, such as system rows."""
    tokens: int
    segment_tokens: int
    unanswered_calls: list[str]
    """Calls that another message follows before their result, each as `tool in message 7`."""
    orphan_results: int
    """Results that answer no call."""
    roles: list[Line]
    largest: list[Line]
    """The messages that take the most tokens."""
    segments: list[Line]
    """What one provider call summarises each, and whether the cache holds that summary."""


async def inspect_rows(
    rows: Sequence[JsonRow],
    *,
    budget: int,
    config: Config | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Inspection:
    """Read a recording once, and look its summaries up in the cache. No provider is asked and nothing is written.

    Args:
        rows: messages, as of a recording.
        budget: tokens that a request may hold; it gives the length of a segment.
        progress: called after every row with the number of rows read so far.

    Raises:
        TemplateError: the prompt set of `config` is incomplete.
    """
    config, count = config or Config(), (await loaded_counter()).count
    prompts = load_prompts(config.prompts)
    history = History()
    builder = NodeBuilder(history, prompts.segment.hash, prompts.merge.hash, build_redactor(config.redact))
    segment_tokens = config.segment_tokens or derive_segment_tokens(budget)
    builder.start(segment_tokens, derive_summary_tokens(segment_tokens), 0)
    for number, row in enumerate(rows, 1):
        history.add(analyse(row), measure(row, count))
        builder.advance()
        progress(number)
    groups = [*history.groups, *history.open_groups]
    numbers = message_numbers(rows)
    results = sum(len(row.result_ids) for row in history.rows)
    return Inspection(
        rows=len(rows),
        messages=sum(row.rendered for row in history.rows),
        tokens=sum(history.tokens),
        segment_tokens=segment_tokens,
        unanswered_calls=[
            f"{call.name or 'a call'} in {named(numbers, at.start + 1)}" for at in groups for call in at.missing
        ],
        orphan_results=results - sum(len(group.answers) for group in groups),
        roles=_roles(history),
        largest=_largest(history, numbers),
        segments=list(_segments(history, builder, await _stored(builder, config))),
    )


async def _stored(builder: NodeBuilder, config: Config) -> frozenset[str]:
    """The keys of the segments whose summaries the cache holds."""
    store = open_store(config.cache)
    try:
        return frozenset(await store.get([leaf.key for leaf in builder.leaves]))
    finally:
        await store.close()


def _segments(history: History, builder: NodeBuilder, stored: frozenset[str]) -> Iterator[Line]:
    sizes = [size for row, size in zip(history.rows, history.tokens, strict=True) if row.rendered]
    until = [0, *accumulate(sizes)]
    for leaf in builder.leaves:
        first, last = history.message_range(leaf.first_group, leaf.end_group)
        tokens, is_stored = until[last] - until[first - 1], "yes" if leaf.key in stored else "no"
        yield {"first": first, "last": last, "tokens": tokens, "key": leaf.key[:10], "stored": is_stored}


def _roles(history: History) -> list[Line]:
    """The roles in the order in which they come."""
    sizes: dict[str, list[int]] = {}
    for row, size in zip(history.rows, history.tokens, strict=True):
        sizes.setdefault(row.role, []).append(size)
    return [{"role": role, "rows": len(found), "tokens": sum(found)} for role, found in sizes.items()]


def _largest(history: History, numbers: Sequence[int | None]) -> list[Line]:
    order = sorted(range(len(history)), key=lambda at: -history.tokens[at])[:_LARGEST]
    return [
        {
            "message": numbers[at] or "",
            "tokens": history.tokens[at],
            "role": history.rows[at].role,
            "tool": str(history.rows[at].raw.get("name") or ""),
        }
        for at in order
    ]
