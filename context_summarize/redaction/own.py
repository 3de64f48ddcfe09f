"""The user's own patterns: checked when they are compiled, and stopped when they take too long."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence

import regex

from context_summarize.errors import ConfigError
from context_summarize.redaction.formats import Span, replaced

logger = logging.getLogger(__name__)

WITHHELD = "[withheld: a redact pattern took too long]"
"""In place of a whole text that the user's own patterns could not search in time."""
_MARK = re.compile(rf"\[redacted: [^\]\n]{{1,40}}\]|{re.escape(WITHHELD)}")
_SECONDS = 1.0
"""Longest time that the patterns may take for one text."""
_SECONDS_LATER = 0.1
"""The same once they have taken too long, so that a session does not stand still."""


class OwnPatterns:
    """Takes matches of the user's own patterns out of texts; a text that takes too long is withheld as a whole.

    A call may last as long as `seconds`, mostly without the interpreter's lock: it belongs into a thread.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str], seconds: float = _SECONDS) -> None:
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._seconds = seconds
        self._slow: set[int] = set()
        """Hashes of texts that were withheld: the same text is always shown alike, and costs its time once."""

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __call__(self, text: str) -> str:
        """The text with a mark in place of each match."""
        if hash(text) in self._slow:
            return WITHHELD
        seconds, clean = self._seconds, text
        for pattern in self._patterns:
            try:
                spans, seconds = _found(pattern, clean, seconds)
            except (TimeoutError, MemoryError) as error:
                if not self._slow:
                    logger.warning(
                        "redact: %r fails for a text of %d characters (%s); such a text is withheld from summaries; "
                        "change the pattern so that it does not backtrack",
                        pattern.pattern, len(text), str(error) or type(error).__name__,
                    )  # fmt: skip
                self._slow.add(hash(text))
                self._seconds = min(_SECONDS_LATER, self._seconds)
                return WITHHELD
            clean = replaced(clean, spans)
        return clean


def _found(pattern: regex.Pattern[str], text: str, seconds: float) -> tuple[list[Span], float]:
    """Spans where the pattern matches outside of marks, and the seconds of this thread that are left for the others.

    Raises:
        TimeoutError: no time is left.
    """
    spans: list[Span] = []
    marks = [mark.span() for mark in _MARK.finditer(text)][::-1]
    at, end = 0, time.thread_time() + seconds
    while at <= len(text):
        if (left := end - time.thread_time()) <= 0:
            raise TimeoutError(f"it takes longer than {seconds:g} s")
        found = pattern.search(text, at, concurrent=True, timeout=left)
        if found is None:
            break
        while marks and marks[-1][1] <= found.start():
            marks.pop()
        if marks and marks[-1][0] <= found.start():
            at = marks[-1][1]
        else:
            at = max(found.end(), found.start() + 1)
            spans += [Span(found.start(), found.end(), "own pattern")] if found.end() > found.start() else []
    return spans, end - time.thread_time()


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        re.compile(pattern)  # what Python's own module refuses is refused, in its words
        compiled = regex.compile(pattern)
        is_empty = compiled.match("", timeout=_SECONDS) is not None
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"redact: {pattern!r} is not a regular expression ({error}); correct it, or escape its special characters "
            "with a backslash"
        ) from None
    if is_empty:
        raise ConfigError(f"redact: {pattern!r} matches the empty text; change it to match at least one character")
    return compiled
