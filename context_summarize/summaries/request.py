"""The request for one summary: its instructions, the fenced transcript, and how long the input may be."""

from __future__ import annotations

from amplifier_core.message_models import ChatRequest, Message

from context_summarize.summaries.hints import LITTLE_REASONING
from context_summarize.summaries.job import Job, Target
from context_summarize.summaries.prompts import PromptTemplate
from context_summarize.transcript.fences import enclosed, escape_fence, fence_of

PURPOSE = "context-summarize"
_CALL_OVERHEAD = 600
"""Tokens of a summary request beside its transcript: instructions, fence, wrapping."""


def input_limit(window: int | None, output_room: int) -> int | None:
    """Tokens of transcript that one request may carry beside such an answer; None if the window is unknown."""
    return None if window is None else max(256, window - _CALL_OVERHEAD - output_room)


def instructions_of(job: Job, template: PromptTemplate, text: str, count: int) -> str:
    """The filled template; `count` is the number of texts that are joined."""
    words = str(max(20, job.summary_tokens * 3 // 4))
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
        reasoning_effort=LITTLE_REASONING,
    )
