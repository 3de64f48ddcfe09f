"""Removes secrets from a text: known formats, values that a word tells, users' own patterns."""

from context_summarize.redaction.redactor import Redact, build_redactor, redact_known, traceback_of, withholds

__all__ = ["Redact", "build_redactor", "redact_known", "traceback_of", "withholds"]
