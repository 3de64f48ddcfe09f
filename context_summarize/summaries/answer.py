"""Reads a provider's answer once, into plain values: what it holds may raise, lie, or be of any type."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from context_summarize.messages.rows import CALL_BLOCKS
from context_summarize.transcript.surrogates import without_surrogates

_MOST_TOKENS = 10**9
_MOST_DOLLARS = 10**6
_PLACES = 12
"""Figures beyond these are absurd for one call; a figure with 999,999 digits would stop every sum after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A provider's answer in plain values."""

    text: str = ""
    """The text blocks, joined, without thinking and other blocks."""
    finish: str = ""
    """Why it ended, in lower case; "" where that is not said."""
    calls_tools: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """US dollars."""
    model: str | None = None


def read_answer(response: Any) -> Answer:
    """The answer in plain values. A part of it may raise anything while it is read."""
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
        input_tokens=_tokens(getattr(usage, "input_tokens", None)),
        output_tokens=_tokens(getattr(usage, "output_tokens", None)),
        cost=_dollars(getattr(usage, "cost_usd", None)),
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


def _tokens(told: Any) -> int:
    """A provider's figure as tokens; 0 if it is no positive whole number, or an absurd one."""
    if not isinstance(told, int) or isinstance(told, bool):
        return 0
    return int(told) if 0 < told <= _MOST_TOKENS else 0


def _dollars(told: Any) -> Decimal | None:
    """A provider's figure as US dollars; None if it is no number from 0 to a million."""
    if isinstance(told, bool) or not isinstance(told, int | float | str | Decimal):
        return None
    try:
        value = Decimal(str(told))
        return round(value, _PLACES).normalize() if 0 <= value <= _MOST_DOLLARS else None
    except (ArithmeticError, ValueError):
        return None
