"""Reads a provider's answer into plain values, and checks by its form that it is a summary. Pure.

Except for English refusals it judges no words: no list of words finds bad summaries in every language. The notes next
to the summaries contain the exact values, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from context_summarize.messages.rows import CALL_BLOCKS
from context_summarize.redaction import Redact
from context_summarize.summaries.jobs import Job
from context_summarize.tokens.measure import Count
from context_summarize.transcript.escaping import without_surrogates

_MOST_TOKENS, _MOST_DOLLARS, _PLACES = 10**9, 10**6, 12
"""Larger figures are absurd for one call. A figure with 999,999 digits would break every later sum."""


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
    blocks = [*_blocks(response)]
    text = "\n".join(text for kind, text in blocks if kind == "text" and isinstance(text, str))
    return Answer(
        text=without_surrogates(text).strip(),
        finish=str(finish).lower() if finish else "",
        calls_tools=bool(getattr(response, "tool_calls", None)) or any(kind in CALL_BLOCKS for kind, _ in blocks),
        input_tokens=_tokens(getattr(usage, "input_tokens", None)),
        output_tokens=_tokens(getattr(usage, "output_tokens", None)),
        cost=_dollars(getattr(usage, "cost_usd", None)),
        model=without_surrogates(model)[:200] if isinstance(model, str) else None,
    )


def _blocks(response: Any) -> Iterator[tuple[Any, Any]]:
    """Yields type and text of each block of an answer; a block may be a model, a dictionary, or anything else."""
    content = getattr(response, "content", None)
    blocks = content if isinstance(content, list | tuple) else [{"type": "text", "text": content}]
    for block in blocks:
        values = block if isinstance(block, dict) else {name: getattr(block, name, None) for name in ("type", "text")}
        yield values.get("type"), values.get("text")


def _tokens(figure: Any) -> int:
    """Returns a provider's figure as tokens; 0 if it is no positive whole number, or an absurd one."""
    return figure if isinstance(figure, int) and 0 < figure <= _MOST_TOKENS else 0


def _dollars(figure: Any) -> Decimal | None:
    """Returns a provider's figure as US dollars; None if it is no number from 0 to a million."""
    try:
        value = Decimal(str(figure))
        return round(value, _PLACES).normalize() if 0 <= value <= _MOST_DOLLARS else None
    except (ArithmeticError, ValueError):
        return None


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
_GOES_ON = re.compile(
    r"[\s>*_`]*(?:#{1,6}[ \t]*summary \d+ of \d+\b|\[[mb]\d+\] (?:user|assistant|tool)\b"
    r"|#\d+ (?:user|assistant|tool)\b|=== transcript [0-9a-f]{20} ===)",
    re.IGNORECASE,
)
"""The beginning of an answer that continues the request: SmolLM2 began with "## Summary 7 of 6".

Further down they are allowed: `show_node` quotes them.
"""
_LINE = 20
"""Characters. A shorter line may equal one of the instructions by chance."""
_LOOP = 100
"""Characters of the shortest loop."""
_TIMES = 4
"""Repetitions that make a loop."""
_LONGEST = 4
"""A summary is cut off beyond this many times the requested length."""
_LEAST = 512
"""Tokens that any summary may have: a short one has headings too."""
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[\u3002\uff01\uff1f]|(?<=\S)(?=\n)")

REASONS: Mapping[str, str] = {
    "tool_calls": "it calls tools",
    "refusal": "the model declined",
    "failed": "the provider says that it failed",
    "cut_off": "it was cut off at its limit of tokens",
    "empty": "it holds no text",
    "not_smaller": "it is as long as what it summarises",
    "copied": "it repeats the request",
    "repeats": "it says the same again and again",
}
"""The reason why an answer is no summary, for each kind."""


class AnswerRefusedError(Exception):
    """The answer is no summary; `kind` is a key of `REASONS`."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the answer is not a summary: {REASONS[kind]}")
        self.kind = kind


def summary_in(answer: Answer, job: Job, instructions: str, count: Count, *, clean: Redact, is_last: bool) -> str:
    """Returns the summary that an answer contains.

    Args:
        clean: removes secrets.
        is_last: True if no other request follows. Then an answer that was cut off needs half the requested length only.

    Raises:
        AnswerRefusedError: the answer is no summary.
    """
    if len(answer.text) > 8 * len(job.text) + 4_096:
        raise AnswerRefusedError("not_smaller")  # too long to be read, let alone counted
    said = clean(answer.text)
    text = _unlooped(said, job.text)
    kind = "tool_calls" if answer.calls_tools else _FINISHES.get(answer.finish)
    if said and not text and kind in (None, "cut_off"):
        kind = "repeats"
    if kind == "cut_off":
        text = _whole_sentences(text)
        if count(text) >= job.summary_tokens // (2 if is_last else 1):
            kind = None
    size, most = count(text), max(_LEAST, _LONGEST * job.summary_tokens)
    kind = kind or _lack(text, size, job, instructions)
    if kind is not None:
        raise AnswerRefusedError(kind)
    return text if size <= most else _whole_sentences(text[: len(text) * most // size]) or text


def _lack(text: str, size: int, job: Job, instructions: str) -> str | None:
    """Returns why a text of this many tokens is no summary; None if its form is that of a summary."""
    if not text:
        return "empty"
    if len(text) <= _SHORT and _DECLINES.match(text):
        return "refusal"
    if size >= job.source_tokens:
        return "not_smaller"
    return "copied" if _GOES_ON.match(text) or _is_copied(text, instructions) else None


def _is_copied(text: str, instructions: str) -> bool:
    """Returns True if the instructions contain every line of a text, except short ones."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > _LINE]
    return bool(lines) and all(line in instructions for line in lines)


def _unlooped(text: str, source: str) -> str:
    """Keeps only the first round of a loop; "" if little is left. A loop is a part that repeats four times or more.

    Small models cannot end: SmolLM2 in llama.cpp repeats one line until its room is full. A loop runs to the end of
    the text, and is at least half of it. A loop that is also in the source is a quotation.
    """
    if len(text) < _LOOP:
        return text
    period = len(text) - _LINE - text.rfind(text[-_LINE:], 0, -1)
    start = len(text) - period
    while start and text[start - 1] == text[start - 1 + period]:
        start -= 1
    size, said = len(text) - start, text[start : start + max(period, _LINE)]
    if size < max(_LOOP, len(text) / 2) or size < _TIMES * period or source.count(said) >= _TIMES:
        return text
    kept = _whole_sentences(text[: start + period])
    return kept if len(kept) >= _LOOP else ""


def _whole_sentences(text: str) -> str:
    """Returns the text up to the end of its last whole sentence or line; "" if there is none."""
    end = 0
    for found in _SENTENCE_END.finditer(text):
        end = found.end()
    return text[:end].rstrip()
