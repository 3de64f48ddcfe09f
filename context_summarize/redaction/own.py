"""The user's own patterns: checked when they are compiled, and given up for the session when they are too slow."""

from __future__ import annotations

import logging
import re
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
_SECONDS = 2.0
"""What a pattern may take for a megabyte, and for a shorter text: some ten times an ordinary search.

Any value of this size does.
"""


class Redactor:
    """Redacts texts, also matches of the user's own patterns. A pattern that takes too long withholds every text.

    A call may last seconds, mostly without the interpreter's lock: a long text belongs into a thread.

    Args:
        known: removes the secrets that need no pattern of the user's.
        level: the level of the one line that says so.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str], known: Callable[[str], str], level: int = logging.WARNING) -> None:
        self._patterns = [(pattern, _compiled(pattern)) for pattern in patterns]
        self._known, self._level = known, level
        self.withholds = False
        """True once a pattern was too slow: no text is searched any more, and none is shown."""

    def __call__(self, text: str) -> str:
        """Returns the text with a mark in place of each secret, or the mark of a withheld text."""
        if self.withholds:
            return WITHHELD if text else text
        text = self._known(text)
        for pattern, compiled in self._patterns:
            most = _SECONDS * max(1, len(text) / 1_000_000)
            try:
                text = compiled.sub(lambda found: _MARK if found[0] else "", text, concurrent=True, timeout=most)
            except (TimeoutError, MemoryError) as error:
                if not self.withholds:  # another thread may have found it out
                    told = (
                        "redact: %r is too slow for a text of %d characters (%s): in this session no text is summarised"
                    )
                    told += " any more; change the pattern so that it does not backtrack"
                    logger.log(self._level, told, pattern, len(text), str(error) or type(error).__name__)
                self.withholds = True
                return WITHHELD
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
