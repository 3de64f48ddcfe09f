"""The user's own patterns: checked when they are compiled, and stopped when they take too long."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence

import regex

from context_summarize.errors import ConfigError

logger = logging.getLogger(__name__)

WITHHELD = "[withheld: a redact pattern took too long]"
"""In place of a whole text that the user's own patterns could not search in time."""
_MARK = "[redacted: own pattern]"
_PASS_MARKS = rf"(?:\[redacted:\x20[^\]\n]{{1,40}}\]|{re.escape(WITHHELD)})(*SKIP)(*FAIL)|"
"""Comes before each pattern. The search skips marks, so that patterns may be applied twice."""
_SECONDS = 1.0
"""Longest time that the patterns may take for one text."""
_SECONDS_LATER = 0.1
"""The time after they have once taken too long, so that they delay the session no more."""


class OwnPatterns:
    """Takes matches of the user's own patterns out of texts; a text that takes too long is withheld as a whole.

    A call may last a second, mostly without the interpreter's lock: a long text belongs into a thread.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [(pattern, _compiled(pattern)) for pattern in patterns]
        self._seconds = _SECONDS
        self._slow: set[int] = set()
        """Hashes of texts that were withheld: the same text is always shown alike, and costs its time once."""

    def __call__(self, text: str) -> str:
        """Returns the text with a mark in place of each match."""
        if hash(text) in self._slow:
            return WITHHELD
        clean, end = text, time.thread_time() + self._seconds
        for pattern, compiled in self._patterns:
            left = max(0.001, end - time.thread_time())
            try:
                clean = compiled.sub(lambda found: _MARK if found[0] else "", clean, concurrent=True, timeout=left)
            except (TimeoutError, MemoryError) as error:
                if not self._slow:
                    logger.warning(
                        "redact: %r fails for a text of %d characters (%s); such a text is withheld from summaries; "
                        "change the pattern so that it does not backtrack",
                        pattern, len(text), str(error) or type(error).__name__,
                    )  # fmt: skip
                self._slow.add(hash(text))
                self._seconds = _SECONDS_LATER
                return WITHHELD
        return clean


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        re.compile(pattern)  # what Python's own module refuses is refused, in its words
        compiled = regex.compile(_PASS_MARKS + pattern)
        is_empty = compiled.match("", timeout=_SECONDS) is not None
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"redact: {pattern!r} is not a regular expression ({error}); correct it, or escape its special characters "
            "with a backslash"
        ) from None
    if is_empty:
        raise ConfigError(f"redact: {pattern!r} matches the empty text; change it to match at least one character")
    return compiled
