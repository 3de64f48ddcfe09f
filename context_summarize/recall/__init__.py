"""Reads summarised messages back, by number or by words in a full-text index. Also the session's tools."""

from context_summarize.recall.answer import MIN_TOKENS, RecallAnswer, RecallQuery, limit_tokens
from context_summarize.recall.service import RecallService

__all__ = ["MIN_TOKENS", "RecallAnswer", "RecallQuery", "RecallService", "limit_tokens"]
