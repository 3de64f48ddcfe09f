"""Validates a provider's answer: whether it is a summary, and if not, why. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from context_summarize.summaries.answer import Answer

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
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[\u3002\uff01\uff1f]|(?<=\S)(?=\n)")

REASONS: Mapping[str, str] = {
    "tool_calls": "it calls tools",
    "refusal": "the model declined",
    "cut_off": "it filled the room that it was given and did not end",
    "empty": "it holds no text",
    "error_text": "it is the text of an error",
    "not_smaller": "it is as long as what it summarises",
    "copied": "it repeats the request",
    "chat": "it greets, offers help or asks back",
    "answer": "it speaks to the user instead of telling what was said",
    "repeats": "it says the same again and again",
    "off_topic": "it is about something else",
    "invented": "it lists ids that its source does not hold",
}
"""What the words for why an answer is no summary mean."""


def refusal(answer: Answer, text: str, tokens: int, source_tokens: int) -> str | None:
    """One word for why this answer is not a summary by its form, or None if it is one.

    Args:
        text: the answer's text without secrets.
        tokens: the size of that text.
        source_tokens: the size of its source.
    """
    if answer.calls_tools:
        return "tool_calls"
    if answer.finish in _REFUSED:
        return "refusal"
    if answer.finish in _CUT_OFF:
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


def whole_sentences(text: str) -> str:
    """The text up to the end of its last whole sentence or line; "" where there is none."""
    end = 0
    for found in _SENTENCE_END.finditer(text):
        end = found.end()
    return text[:end].rstrip()
