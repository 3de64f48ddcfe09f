"""Validates a provider's answer: whether it is a summary, and if not, why. Pure."""

from __future__ import annotations

import re
from typing import Any

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "incomplete"})
_REFUSED = frozenset({"refusal", "content_filter", "safety", "blocked"})
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m (?:really |very )?sorry|sorry,|i (?:can ?not|can['’]?t|won['’]?t|am unable|am not able)"
    r"|as an ai\b|i must decline|unable to comply)",
    re.IGNORECASE,
)
_ERROR_TEXT = re.compile(
    r"^\W*(?:error\b|an error occurred|internal server error|service unavailable|traceback \(most recent call last\)"
    r"|(?:rate limit|quota) exceeded|bad gateway|gateway time-?out|request timed out|http \d{3}\b|\{\s*\"error\")",
    re.IGNORECASE,
)
_SHORT = 400
"""Longest answer, in characters, that may count as a refusal or an error text; a real summary is longer."""


def answer_text(response: Any) -> str:
    """The text blocks of a `ChatResponse`, joined, without thinking and other blocks."""
    content = getattr(response, "content", None)
    if isinstance(content, str):
        return content.strip()
    texts: list[str] = []
    for block in content if isinstance(content, list | tuple) else ():
        kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
        text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
        if kind == "text" and isinstance(text, str):
            texts.append(text)
    return "\n".join(texts).strip()


def _calls_tools(response: Any) -> bool:
    if getattr(response, "tool_calls", None):
        return True
    content = getattr(response, "content", None)
    blocks = content if isinstance(content, list | tuple) else ()
    kinds = (block.get("type") if isinstance(block, dict) else getattr(block, "type", None) for block in blocks)
    return any(kind in ("tool_call", "tool_use") for kind in kinds)


def refusal(response: Any, text: str, tokens: int, source_tokens: int) -> str | None:
    """One word for why this answer is not a summary, or None if it is one.

    `tokens` is the size of the answer's text, `source_tokens` the size of its source.
    """
    finish = str(getattr(response, "finish_reason", None) or "").lower()
    if _calls_tools(response):
        return "tool_calls"
    if finish in _REFUSED:
        return "refusal"
    if finish in _CUT_OFF:
        return "cut_off"
    if not text:
        return "empty"
    if len(text) <= _SHORT and _REFUSAL.match(text):
        return "refusal"
    if len(text) <= _SHORT and _ERROR_TEXT.match(text):
        return "error_text"
    if tokens >= source_tokens:
        return "not_smaller"
    return None
