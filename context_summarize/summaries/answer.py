"""Reads a provider's answer into plain values, and checks by its form that it is a summary. Pure.

Except for English refusals it judges no words: no list of words finds bad summaries in every language. The thread
next to the summaries contains the exact values, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from context_summarize.messages.rows import CALL_BLOCKS
from context_summarize.redaction import Redact
from context_summarize.summaries.jobs import Job
from context_summarize.tokens.measure import Count, figure, input_tokens
from context_summarize.transcript.escaping import enclosed, fence_of, without_surrogates


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A provider's answer in plain values."""

    text: str = ""
    """The text blocks, joined, without thinking, other blocks and lone surrogates."""
    finish: str = ""
    """The provider's word for why the answer ended, in lower case; "" if it gives none."""
    calls_tools: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """US dollars."""
    model: str | None = None


def read_answer(response: Any) -> Answer:
    """Returns the answer in plain values. Reading a part of the response may raise any error."""
    usage = getattr(response, "usage", None)
    marks = getattr(response, "metadata", None)
    model = getattr(response, "model", None) or (marks.get("model") if isinstance(marks, dict) else None)
    finish = getattr(response, "finish_reason", None)
    content = getattr(response, "content", None) or ""
    blocks = () if isinstance(content, str) else content
    texts = [content] if isinstance(content, str) else [block.text for block in blocks if _kind(block) == "text"]
    return Answer(
        text=without_surrogates("\n".join(texts)).strip(),
        finish=str(finish).lower() if finish else "",
        calls_tools=bool(getattr(response, "tool_calls", None)) or any(_kind(block) in CALL_BLOCKS for block in blocks),
        input_tokens=input_tokens(usage),
        output_tokens=figure(usage, "output_tokens"),
        cost=_dollars(getattr(usage, "cost_usd", None)),
        model=without_surrogates(model)[:200] if isinstance(model, str) else None,
    )


def _kind(block: Any) -> Any:
    return getattr(block, "type", None)


def _dollars(cost: Any) -> Decimal | None:
    """Returns a provider's figure as US dollars; None if it is no finite number, or below 0."""
    try:
        value = Decimal(str(cost))
    except ArithmeticError:
        return None
    return value if value.is_finite() and value >= 0 else None


_FINISHES = {
    **dict.fromkeys(("refusal", "content_filter", "safety", "blocked"), "refusal"),
    **dict.fromkeys(("error", "failed", "cancelled"), "failed"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "incomplete"), "cut_off"),
}
"""The meaning of a provider's words for why an answer ended."""
_DECLINES = re.compile(
    r"^\W*(?:i['’]?m (?:really |very )?sorry|sorry,|i (?:can ?not|can['’]?t|won['’]?t|am unable|am not able)"
    r"|as an ai\b|i must decline|unable to comply)",
    re.IGNORECASE,
)
_SHORT = 400
"""Longest answer, in characters, that may count as a refusal in words; a real summary is longer."""
_LONGEST = 4
"""A summary is cut off beyond this many times the requested length."""
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[\u3002\uff01\uff1f]|(?<=\S)(?=\n)")

REASONS: Mapping[str, str] = {
    "tool_calls": "it calls tools",
    "refusal": "the model declined",
    "failed": "the provider says that it failed",
    "cut_off": "it was cut off at its limit of tokens",
    "empty": "it holds no text",
    "not_smaller": "it is as long as what it summarises",
    "copied": "it repeats the transcript",
}
"""The reason why an answer is no summary, for each kind."""


class AnswerRefusedError(Exception):
    """The answer is no summary; `kind` is a key of `REASONS`."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the answer is not a summary: {REASONS[kind]}")
        self.kind = kind


def summary_in(answer: Answer, job: Job, *, count: Count, clean: Redact, is_last: bool) -> str:
    """Returns the summary that an answer contains.

    Args:
        clean: removes secrets.
        is_last: True if no other request follows. Then an answer that was cut off needs half the requested length only.

    Raises:
        AnswerRefusedError: the answer is no summary.
    """
    text, kind = clean(answer.text), "tool_calls" if answer.calls_tools else _FINISHES.get(answer.finish)
    if kind == "cut_off":
        text = _whole_sentences(text)
        if count(text) >= job.summary_tokens // (2 if is_last else 1):
            kind = None
    size, most = count(text), _LONGEST * job.summary_tokens
    kind = kind or _lack(text, size, job)
    if kind is not None:
        raise AnswerRefusedError(kind)
    return text if size <= most else _whole_sentences(text[: len(text) * most // size]) or text


def _lack(text: str, size: int, job: Job) -> str | None:
    """Returns why a text of this many tokens is no summary; None if its form is that of a summary."""
    if not text:
        return "empty"
    if len(text) <= _SHORT and _DECLINES.match(text):
        return "refusal"
    if size >= job.source_tokens:
        return "not_smaller"
    is_copied = not job.level and text in enclosed(job.text, fence_of(job.text), before="")
    return "copied" if is_copied else None


def _whole_sentences(text: str) -> str:
    """Returns the text up to the end of its last whole sentence or line; "" if there is none."""
    end = 0
    for found in _SENTENCE_END.finditer(text):
        end = found.end()
    return text[:end].rstrip()
