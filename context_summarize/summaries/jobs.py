"""The source of one summary, and the request for it: instructions, a fenced transcript, and hints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from amplifier_core.message_models import ChatRequest, Message

from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary
from context_summarize.core.parts import numbered_from, source
from context_summarize.host_types import Provider
from context_summarize.notes.fallback import fallback_text, join_fallbacks
from context_summarize.summaries.prompts import PromptSet
from context_summarize.tokens.measure import Count
from context_summarize.transcript.escaping import cut_middle, enclosed, fence_of, numbered

PURPOSE = "context-summarize"
LITTLE_REASONING = "low"
"""`ChatRequest.reasoning_effort` of a summary request."""
_THINKING = 2_000
"""Tokens of an answer that the model may use for reasoning, which many models do not show."""


@dataclass(frozen=True, slots=True)
class Target:
    """The provider that makes summaries."""

    provider: Provider
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
    """The source: the part at level 0; for a merge the children's texts, each under a heading."""
    source_tokens: int
    """Size of the source; for a merge that of the children's texts."""
    summary_tokens: int
    focus: str | None = None
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
    """Returns the job for a node's summary, from its part, or from its children's texts."""
    if not node.children:
        text = source(log, node)
        return Job(node.key, 0, text, count(text), node.summary_tokens, node.focus)
    texts = [numbered_from(log, one, child.text, node) for one, child in zip(node.children, children, strict=True)]
    size = sum(child.tokens for child in children)
    return Job(node.key, node.level, numbered(texts), size, node.summary_tokens, count=len(children))


def make_fallback(node: Node, log: Log, children: Sequence[Summary], count: Count) -> Summary:
    """Returns a node's fallback summary, from its rows or from its children's texts."""
    if node.children:
        size = sum(child.tokens for child in children)
        text = join_fallbacks([child.text for child in children], node.summary_tokens, count)
    else:
        groups = map(log.rendered_group, range(node.first_group, node.end_group))
        rows = [row for group in groups for row in log.read(group, log.redact)]
        size = sum(count(row.text) for row in rows)
        text = fallback_text(rows, min(node.summary_tokens, max(16, size // 2)), count)
    return Summary(key=node.key, level=node.level, text=text, tokens=count(text), source_tokens=size, fallback=True)


def _lengths(job: Job) -> dict[str, str]:
    """Returns the words and the characters that a prompt asks for at most; a merge is shorter than its texts."""
    tokens = min(job.summary_tokens, job.source_tokens * 2 // 3) if job.level else job.summary_tokens
    words = max(20, tokens * 3 // 4)
    return {"words": str(words), "characters": str(words * 19 // 3)}


def answer_room(summary_tokens: int, target: Target, *, had_bad_answer: bool = False) -> int:
    """Returns `max_output_tokens`: twice the summary's length, and room for reasoning; double after a bad answer."""
    tries = 2 if had_bad_answer else 1
    room = tries * (2 * summary_tokens + _THINKING)
    if target.window is not None:
        room = min(room, tries * max(2 * summary_tokens, target.window // 4))
    return room if target.output is None else min(room, target.output)


def input_limit(summary_tokens: int, target: Target, apart: int) -> int | None:
    """Returns the tokens of transcript for which the window has room; None if the window is unknown.

    Args:
        apart: tokens of the system row.
    """
    room = answer_room(summary_tokens, target, had_bad_answer=True)
    return None if target.window is None else max(256, target.window - apart - room)


def instructions(job: Job, prompts: PromptSet) -> str:
    """Returns the system row of a request."""
    template = prompts.merge if job.level else prompts.segment
    return template.fill(fence=fence_of(job.text), count=str(job.count), **_lengths(job))


def summary_request(job: Job, prompts: PromptSet, target: Target, room: int | None) -> ChatRequest:
    """Returns the request: instructions as a system row, the transcript as fenced data in a user row.

    Args:
        room: tokens of the answer; None leaves out the hints, which are this bound and `reasoning_effort`.
    """
    fence = fence_of(job.text)
    focus = f"What follows should keep above all: {' '.join(job.focus.split())}\n\n" if job.focus else ""
    return ChatRequest(
        messages=[
            Message(role="system", content=instructions(job, prompts)),
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
