"""The user's own patterns: checked when they are compiled, and stopped when they take too long."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import regex

from context_summarize.background import Steps, finished
from context_summarize.errors import ConfigError
from context_summarize.redaction.marks import MARK, OWN, WITHHELD
from context_summarize.redaction.spans import Span, replaced

logger = logging.getLogger(__name__)

SECONDS = 1.0
"""Longest time that the patterns may take for one text."""
_SECONDS_LATER = 0.1
"""The same once they have taken too long for `_PATIENCE` texts, so that a session does not stand still."""
_PATIENCE = 5
_REMEMBERED = 4_096
_AT_ONCE = 32
"""Matches that one step looks for."""


class OwnPatterns:
    """Takes matches of the user's own patterns out of texts; a text that takes too long is withheld as a whole.

    Raises:
        ConfigError: a pattern is not a regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Sequence[str], seconds: float = SECONDS) -> None:
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._seconds = seconds
        self._slow: OrderedDict[bytes, None] = OrderedDict()
        """Hashes of texts that were withheld: the same text is always shown alike, and costs its time once."""
        self._warned = False

    def __call__(self, text: str) -> str:
        """The text with a mark in place of each match."""
        return finished(self.steps(text))

    def steps(self, text: str) -> Steps[str]:
        """The same, a few dozen matches of one pattern a step. Only the time of the search counts."""
        if not self._patterns or not text or text == WITHHELD:
            return text
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() if self._slow else b""
        if key in self._slow:
            return WITHHELD
        seconds = self._seconds if len(self._slow) < _PATIENCE else min(_SECONDS_LATER, self._seconds)
        time_left = _TimeLeft(seconds)
        clean = text
        for pattern in self._patterns:
            try:
                spans: list[Span] = []
                for span in _matches(pattern, clean, time_left):
                    spans.append(Span(*span, OWN))
                    if len(spans) % _AT_ONCE == 0:
                        yield from time_left.pause()
                clean = replaced(clean, spans)
                yield from time_left.pause()
            except TimeoutError:
                self._withhold(pattern.pattern, text, seconds)
                return WITHHELD
        return clean

    def _withhold(self, pattern: str, text: str, seconds: float) -> None:
        self._slow[hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()] = None
        if len(self._slow) > _REMEMBERED:
            self._slow.popitem(last=False)
        if not self._warned:
            self._warned = True
            logger.warning(
                "redact: %r took longer than %g s for a text of %d characters; such a text is withheld from summaries; "
                "change the pattern so that it does not backtrack",
                pattern, seconds, len(text),
            )  # fmt: skip


class _TimeLeft:
    """Counts down the seconds of a search, pauses aside."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def __call__(self) -> float:
        """Seconds that are left; a little more than none once they are used up."""
        return max(self._until - time.monotonic(), 1e-6)

    def pause(self) -> Steps[None]:
        """One step in which no time passes."""
        stopped = time.monotonic()
        yield
        self._until += time.monotonic() - stopped


def _matches(pattern: regex.Pattern[str], text: str, time_left: Callable[[], float]) -> Iterator[tuple[int, int]]:
    """Spans where the pattern matches, outside existing marks.

    Raises:
        TimeoutError: no time is left.
    """
    at = 0
    mark = MARK.search(text)
    while found := pattern.search(text, at, timeout=time_left()):
        while mark is not None and mark.end() <= found.start():
            mark = MARK.search(text, mark.end())
        if mark is not None and mark.start() <= found.start():
            at = mark.end()
        elif found.end() > found.start():
            yield found.span()
            at = found.end()
        else:
            at = found.end() + 1
        if at > len(text):
            return


def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        re.compile(pattern)  # what Python's own module refuses is refused, in its words
        compiled = regex.compile(pattern)
        is_empty = compiled.match("", timeout=SECONDS) is not None
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"redact: {pattern!r} is not a regular expression ({error}); correct it, or escape its special characters "
            "with a backslash"
        ) from None
    if is_empty:
        raise ConfigError(f"redact: {pattern!r} matches the empty text; change it to match at least one character")
    return compiled
