"""What a provider is sent for one summary: instructions, a fenced transcript, the length of the answer, and hints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Set
from typing import Any

from amplifier_core.llm_errors import InvalidRequestError, LLMError
from amplifier_core.message_models import ChatRequest, Message

from context_summarize.summaries.foreign import error_text
from context_summarize.summaries.jobs import Job, Target
from context_summarize.transcript.escaping import enclosed, escape_fence, fence_of

PURPOSE = "context-summarize"
LITTLE_REASONING = "low"
"""`ChatRequest.reasoning_effort` of a summary request."""
_OVERHEAD = 600
"""Tokens of a summary request beside its transcript: instructions, fence, wrapping."""
_THINKING = 2_000
"""Tokens of an answer that may go into reasoning, which many models do not show."""
_LENGTH = re.compile(r"max(?:imum)?[ _]?(?:output|completion|new)?[ _]?tokens|(?:output|completion) tokens")
_INPUT = re.compile(r"context[ _](?:length|window|limit|size)|maximum context|input|prompt|messages")
_MAY_REFUSE = (LLMError, InvalidRequestError)
"""Classes of the host that a refused part of a request may have; a client's own error may have any."""
_HINTS = {"reasoning": ("reasoning", "effort", "thinking"), "options": ("store",)}
"""What a hint is called in the errors of providers that refuse it."""


def answer_room(summary_tokens: int, target: Target, *, is_second: bool = False) -> int:
    """`max_output_tokens`: twice the length that is asked for, and reasoning; all of it twice in a second try."""
    room = (2 * summary_tokens + _THINKING) * (1 + is_second)
    if target.window is not None:
        room = min(room, max(2 * summary_tokens, target.window // 4) * (1 + is_second))
    return room if target.output is None else min(room, target.output)


def input_limit(summary_tokens: int, target: Target) -> int | None:
    """Tokens of transcript that a request may carry beside its answer; None if the window is unknown."""
    room = answer_room(summary_tokens, target, is_second=True)
    return None if target.window is None else max(256, target.window - _OVERHEAD - room)


def summary_request(job: Job, instructions: str, target: Target, room: int, left_out: Set[str]) -> ChatRequest:
    """The request: instructions as a system row, the transcript as fenced data in a user row.

    Args:
        left_out: what the provider has refused before, by `refused_parts`.
    """
    fence = fence_of(job.text)
    focus = f"What follows should keep above all: {' '.join(job.focus.split())}\n\n" if job.focus else ""
    return ChatRequest(
        messages=[
            Message(role="system", content=instructions),
            Message(role="user", content=f"{escape_fence(focus, fence)}{enclosed(job.text, fence)}"),
        ],
        max_output_tokens=None if "length" in left_out else room,
        metadata={"purpose": PURPOSE, "stream": False},
        model=target.model,
        reasoning_effort=None if "reasoning" in left_out else LITTLE_REASONING,
    )


def call_options(target: Target, left_out: Set[str]) -> dict[str, Any]:
    """The options of `complete()`, which providers look up by name and ignore if they do not know them.

    `store` and `enable_response_chaining` (openai, vllm) keep an answer on the server; `extended_thinking` (anthropic)
    would be turned on by any `reasoning_effort`.
    """
    options: dict[str, Any] = {"model": target.model} if target.model else {}
    if "options" in left_out or not _takes_options(target.provider):
        return options
    if "reasoning" not in left_out:
        options["extended_thinking"] = False
    if getattr(target.provider, "enable_response_chaining", False):
        options["enable_response_chaining"] = False  # chained answers are stored whatever `store` says
    return {**options, "store": False}


def refused_parts(error: Exception) -> frozenset[str]:
    """What of a request, other than its text, an error refuses: it may be left out, and the call made again."""
    text = error_text(error)[:2_000].casefold()
    if isinstance(error, TypeError):
        return frozenset({"options"} if "keyword argument" in text else ())
    if isinstance(error, LLMError) and type(error) not in _MAY_REFUSE:
        return frozenset()
    is_length = _LENGTH.search(text) and not _INPUT.search(text)
    hints = {hint for hint, words in _HINTS.items() if any(word in text for word in words)}
    return frozenset({"length"} if is_length else hints if isinstance(error, InvalidRequestError) else ())


def _takes_options(provider: Any) -> bool:
    """True if `complete()` takes options by any name."""
    try:
        parameters = inspect.signature(provider.complete).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
