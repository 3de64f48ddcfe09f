"""The request for one summary: its instructions, the fenced transcript, and how long input and answer may be."""

from __future__ import annotations

from amplifier_core.message_models import ChatRequest, Message

from context_summarize.facts.ledger import prose_tokens
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.prompts import PromptTemplate
from context_summarize.transcript.fences import enclosed, escape_fence, fence_of

PURPOSE = "context-summarize"
_THINKING_ROOM = 2_000
_CALL_OVERHEAD = 600
"""Tokens of a summary request beside its transcript: instructions, fence, wrapping."""


def output_room(summary_tokens: int, target: Target, times: int) -> int:
    """max_output_tokens: reasoning models spend output on thinking, so far more than is asked for in words."""
    room = 4 * summary_tokens + _THINKING_ROOM
    if target.window is not None:
        room = min(room, max(summary_tokens * 2, target.window // 4))
    return room * times


def input_limit(summary_tokens: int, target: Target) -> int | None:
    """Tokens of transcript that one request may carry; None if the window is unknown."""
    if target.window is None:
        return None
    return max(256, target.window - _CALL_OVERHEAD - output_room(summary_tokens, target, 1))


def instructions_of(job: Job, template: PromptTemplate, text: str, count: int) -> str:
    """The filled template; `count` is the number of texts that are joined."""
    words = str(max(20, prose_tokens(job.summary_tokens) * 3 // 4))
    return template.fill(words=words, fence=fence_of(text), count=str(count))


def summary_request(job: Job, text: str, instructions: str, target: Target, max_output_tokens: int) -> ChatRequest:
    """The request: instructions as a system row, the transcript as fenced data in a user row."""
    fence = fence_of(text)
    focus = f"What follows should keep above all: {' '.join(job.focus.split())}\n\n" if job.focus else ""
    return ChatRequest(
        messages=[
            Message(role="system", content=instructions),
            Message(role="user", content=f"{escape_fence(focus, fence)}{enclosed(text, fence)}"),
        ],
        max_output_tokens=max_output_tokens,
        metadata={"purpose": PURPOSE, "stream": False},
        model=target.model,
    )
