"""Reads a provider's answer once, into plain values: what it holds may raise, lie, or be of any type."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from context_summarize.messages.rows import CALL_BLOCKS, PRIVATE_BLOCKS
from context_summarize.summaries.calls import guarded
from context_summarize.summaries.usage import Run, Totals, amount, tokens_used
from context_summarize.transcript.surrogates import without_surrogates


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A provider's answer in plain values."""

    text: str = ""
    """The text blocks, joined, without thinking and other blocks."""
    finish: str = ""
    """Why it ended, in lower case; "" where that is not said."""
    calls_tools: bool = False
    reasons: bool = False
    """True if it shows reasoning: thinking blocks, or reasoning tokens in its usage."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """US dollars."""
    model: str | None = None


def read_answer(response: Any) -> Answer:
    """The answer in plain values.

    Raises:
        ProviderStopped: a part of it raised something that is no `Exception` while it was read.
        Exception: whatever else it raised.
    """
    return guarded(lambda: _read(response))


def _read(response: Any) -> Answer:
    content = getattr(response, "content", None)
    blocks = list(content) if isinstance(content, list | tuple) else []
    kinds = {kind for block in blocks if isinstance(kind := _part(block, "type"), str)}
    usage = getattr(response, "usage", None)
    marks = getattr(response, "metadata", None)
    model = getattr(response, "model", None) or (marks.get("model") if isinstance(marks, dict) else None)
    finish = getattr(response, "finish_reason", None)
    return Answer(
        text=answer_text(response),
        finish=str(finish).lower() if finish else "",
        calls_tools=bool(getattr(response, "tool_calls", None)) or not kinds.isdisjoint(CALL_BLOCKS),
        reasons=not kinds.isdisjoint(PRIVATE_BLOCKS) or tokens_used(usage, "reasoning_tokens") > 0,
        input_tokens=tokens_used(usage, "input_tokens"),
        output_tokens=tokens_used(usage, "output_tokens"),
        cost=amount(getattr(usage, "cost_usd", None)),
        model=without_surrogates(model)[:200] if isinstance(model, str) else None,
    )


def _part(block: Any, name: str) -> Any:
    return block.get(name) if isinstance(block, dict) else getattr(block, name, None)


def answer_text(response: Any) -> str:
    """The text blocks of a `ChatResponse`, joined, without thinking and other blocks. It holds no lone surrogate."""
    content = getattr(response, "content", None)
    if isinstance(content, str):
        return without_surrogates(content).strip()
    texts: list[str] = []
    for block in content if isinstance(content, list | tuple) else ():
        text = _part(block, "text")
        if _part(block, "type") == "text" and isinstance(text, str):
            texts.append(text)
    return without_surrogates("\n".join(texts)).strip()


def add_usage(run: Run, answer: Answer, totals: Totals) -> None:
    """Add what an answer tells of its usage to the run and to the totals."""
    run.input_tokens += answer.input_tokens
    run.output_tokens += answer.output_tokens
    totals.input_tokens += answer.input_tokens
    totals.output_tokens += answer.output_tokens
    totals.paid(answer.cost)
    if answer.cost is not None:
        run.cost = answer.cost if run.cost is None else run.cost + answer.cost
    run.model = answer.model or run.model
