"""Rows of OpenAI's Chat Completions and Anthropic's Messages API, there and back."""

from context_summarize.formats.anthropic import from_anthropic, to_anthropic
from context_summarize.formats.openai import from_openai, to_openai

__all__ = ["from_anthropic", "from_openai", "to_anthropic", "to_openai"]
