"""What a foreign error says, for a log: its traceback without secrets."""

from __future__ import annotations

import traceback

from context_summarize.redaction.redactor import build_redactor


def traceback_of(error: BaseException) -> str:
    """The traceback of an error with its causes, on several lines, without secrets of known formats.

    A provider's or a hook's error may quote a request with its key, and a log is read by others than a session is.
    """
    told = "".join(traceback.format_exception(error)).rstrip()
    redact = build_redactor(True)
    return redact(told) if redact else told
