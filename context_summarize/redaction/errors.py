"""What a foreign error says, for a log: its traceback without secrets."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from context_summarize.redaction.redactor import build_redactor


def traceback_of(error: BaseException, setting: bool | Sequence[str] = True) -> str:
    """The traceback of an error with its causes, on several lines, without secrets of known formats.

    A provider's or a hook's error may quote a request with its key, and a log is read by others than a session is.

    Args:
        setting: the setting `redact`: the user's own patterns are taken out too, and `False` leaves the known formats.
    """
    told = "".join(traceback.format_exception(error)).rstrip()
    redact = build_redactor(setting or True)
    return redact(told) if redact else told
