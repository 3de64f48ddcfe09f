"""The source of one summary, and the request for it: instructions, a fenced transcript, and hints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from amplifier_core.message_models import ChatRequest, Message

from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.parts import context_numbers
from context_summarize.core.segments import source, source_text
from context_summarize.notes.fallback import fallback_text, join_fallbacks
from context_summarize.tokens.measure import Count
from context_summarize.transcript.escaping import cut_middle, enclosed, fence_of, numbered
from context_summarize.transcript.marks import renumber, without_marks
from context_summarize.transcript.rendered import RenderedRow

PURPOSE = "context-summarize"
LITTLE_REASONING = "low"
"""`ChatRequest.reasoning_effort` of a summary request."""
_OVERHEAD = 600
"""Tokens of a summary request apart from its transcript: instructions and fence."""
_THINKING = 2_000
"""Tokens of an answer that the model may use for reasoning, which many models do not show."""


@dataclass(frozen=True, slots=True)
class Target:
    """The provider that makes summaries."""

    provider: Any
    name: str
    model: str | None = None
    window: int | None = None
    """Tokens that one request may hold; None = unknown."""
    output: int | None = None
    """Tokens that one answer may hold at most; None = unknown."""
    basis: str = "request"
    """Why this provider was chosen: the name of a setting, or "request" for the provider of the conversation."""


@dataclass(frozen=True, slots=True)
class Job:
    """One summary to make."""

    key: str
    level: int
    text: str
    """The source: the rendered rows at level 0; for a merge the children's texts, each under a heading."""
    source_tokens: int
    """Size of the source; for a merge that of the children's texts."""
    summary_tokens: int
    focus: str | None = None
    rows: tuple[RenderedRow, ...] = ()
    """The rendered rows at level 0."""
    count: int = 1
    """How many texts are merged."""

    def cut_to(self, tokens: int) -> Job:
        """Returns the job; if its source has more tokens than this, the middle of the source is cut out."""
        if self.source_tokens <= tokens:
            return self
        size = len(self.text.encode("utf-8", "surrogatepass"))
        text = cut_middle(self.text, size * tokens // self.source_tokens)
        return replace(self, text=text, source_tokens=tokens)


def make_job(node: Node, log: Log, children: Sequence[Summary], count: Count) -> Job:
    """Returns the job for a node's summary, from its rows, rendered and redacted, or from its children's texts."""
    if node.children:
        texts = [_counted_from(node, log, *pair) for pair in zip(node.children, children, strict=True)]
        text, size = numbered(texts), sum(child.tokens for child in children)
        return Job(node.key, node.level, text, size, node.summary_tokens, count=len(children))
    text = source_text(log, node)
    return Job(node.key, 0, text, count(text), node.summary_tokens, node.focus, source(log, node))


def _counted_from(merge: Node, log: Log, node: Node, summary: Summary) -> str:
    """Returns a child's text with marks that count from the first message of the merge."""
    start = log.message_range(merge.first_group, merge.end_group)[0] - 1
    first, last = log.message_range(node.first_group, node.end_group)
    numbers = context_numbers(log, node.first_group) if not node.children else []
    context = [number and number - start for number in numbers]
    return renumber(summary.text, first - start, last - first + 1, context)


def make_fallback(node: Node, log: Log, children: Sequence[Summary], count: Count) -> Summary:
    """Returns a node's fallback summary, from its rows or from its children's texts."""
    job = make_job(node, log, children, count)
    if node.children:
        text = join_fallbacks([child.text for child in children], job.summary_tokens, count)
    else:
        text = without_marks(fallback_text(job.rows, min(job.summary_tokens, max(16, job.source_tokens // 2)), count))
    return Summary(
        key=job.key, level=job.level, text=text, tokens=count(text), source_tokens=job.source_tokens, fallback=True
    )


def answer_room(summary_tokens: int, target: Target, *, had_bad_answer: bool = False) -> int:
    """Returns `max_output_tokens`: twice the summary's length, and room for reasoning; double after a bad answer."""
    tries = 2 if had_bad_answer else 1
    room = tries * (2 * summary_tokens + _THINKING)
    if target.window is not None:
        room = min(room, tries * max(2 * summary_tokens, target.window // 4))
    return room if target.output is None else min(room, target.output)


def input_limit(summary_tokens: int, target: Target) -> int | None:
    """Returns the tokens of transcript for which the window has room; None if the window is unknown."""
    room = answer_room(summary_tokens, target, had_bad_answer=True)
    return None if target.window is None else max(256, target.window - _OVERHEAD - room)


def summary_request(job: Job, instructions: str, target: Target, room: int | None) -> ChatRequest:
    """Returns the request: instructions as a system row, the transcript as fenced data in a user row.

    Args:
        room: tokens of the answer; None leaves out the hints, which are this bound and `reasoning_effort`.
    """
    fence = fence_of(job.text)
    focus = f"What follows should keep above all: {' '.join(job.focus.split())}\n\n" if job.focus else ""
    return ChatRequest(
        messages=[
            Message(role="system", content=instructions),
            Message(role="user", content=enclosed(job.text, fence, before=focus)),
        ],
        max_output_tokens=room,
        metadata={"purpose": PURPOSE, "stream": False},
        model=target.model,
        reasoning_effort=None if room is None else LITTLE_REASONING,
    )


def call_options(target: Target) -> dict[str, Any]:
    """Returns the options of `complete()`. Providers ignore the options that they do not know.

    `store` and `enable_response_chaining` (openai, vllm) keep an answer on the server; `extended_thinking` (anthropic)
    would be turned on by any `reasoning_effort`.
    """
    options: dict[str, Any] = {"model": target.model} if target.model else {}
    options["extended_thinking"] = False
    if getattr(target.provider, "enable_response_chaining", False):
        options["enable_response_chaining"] = False  # chained answers are stored whatever `store` says
    return {**options, "store": False}
