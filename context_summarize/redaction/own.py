"""The user's own patterns: checked when they are compiled, and given up for the session when they are too slow."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import regex

from context_summarize.errors import ConfigError

logger = logging.getLogger(__name__)

WITHHELD = "[withheld: a redact pattern took too long]"
"""In place of each text once a pattern of the user's own has been too slow."""
_MARK = "[redacted: own pattern]"
_PASS_MARKS = rf"(?:\[redacted:\x20[^\]\n]{{1,40}}\]|{re.escape(WITHHELD)})(*SKIP)(*FAIL)|"
"""Comes before each pattern. The search skips marks, so that patterns may be applied twice."""
_SECONDS = 1.0
"""CPU that the patterns may take in a session beyond what their texts allow."""
_SECONDS_PER_CHARACTER = 2e-6
"""CPU that a character allows each pattern: an ordinary search takes a tenth of it. Any values of this size do."""


class Redactor:
    """Redacts texts, also matches of the user's own patterns. Patterns that use up their time withhold every text.

    A call may last a second, mostly without the interpreter's lock: a long text belongs into a thread.

    Args:
        known: removes the secrets that need no pattern of the user's.
        level: the level of the one line that says so.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str], known: Callable[[str], str], level: int = logging.WARNING) -> None:
        self._patterns = [(pattern, _compiled(pattern)) for pattern in patterns]
        self._known, self._level = known, level
        self._left = _SECONDS
        self.withholds = False
        """True once a pattern was too slow: no text is searched any more, and none is shown."""

    def __call__(self, text: str) -> str:
        """Returns the text with a mark in place of each secret, or the mark of a withheld text."""
        if self.withholds:
            return WITHHELD if text else text
        text = self._known(text)
        for pattern, compiled in self._patterns:
            left = self._left + len(text) * _SECONDS_PER_CHARACTER
            began = time.thread_time()
            try:
                text = compiled.sub(lambda found: _MARK if found[0] else "", text, concurrent=True, timeout=left)
            except (TimeoutError, MemoryError) as error:
                if not self.withholds:  # another thread may have found it out
                    told = (
                        "redact: %r is too slow for a text of %d characters (%s): in this session no text is summarised"
                    )
                    told += " any more; change the pattern so that it does not backtrack"
                    logger.log(self._level, told, pattern, len(text), str(error) or type(error).__name__)
                self.withholds = True
                return WITHHELD
            self._left = max(0.001, min(_SECONDS, left - (time.thread_time() - began)))
        return text


@lru_cache(maxsize=64)
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
