"""Removes secrets from a text: known formats, assigned secrets, users' own patterns."""

from context_summarize.redaction.redactor import Redact, build_redactor, traceback_of

__all__ = ["Redact", "build_redactor", "traceback_of"]
