"""The user's own patterns: checked when they are compiled, and stopped when they take too long."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

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
_QUICK_SECONDS = 0.01
"""Longest search that is one step; a longer one goes on in a thread."""
_LOOK_SECONDS = 0.003
"""How long a step waits for that thread."""


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
        """The same, a match a step. Only the time of the search counts, and a long search is done in a thread."""
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
                spans = yield from _found(pattern, clean, time_left)
            except TimeoutError:
                self._withhold(pattern.pattern, text, seconds)
                return WITHHELD
            clean = replaced(clean, spans)
            yield
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
    """Searches for so many seconds; what else runs meanwhile, here or in other threads, takes none of them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def search(self, pattern: regex.Pattern[str], text: str, at: int) -> Steps[regex.Match[str] | None]:
        """The first match from this place on.

        Raises:
            TimeoutError: no time is left.
        """
        try:
            return self._search(pattern, text, at, _QUICK_SECONDS)
        except TimeoutError:
            if self._seconds <= 0:
                raise
        thread = ThreadPoolExecutor(1, "context-summarize-redact")
        try:
            # `regex` lets go of the interpreter's lock while it searches.
            work = thread.submit(self._search, pattern, text, at, self._seconds)
            while not wait([work], _LOOK_SECONDS).done:
                yield
            return work.result()
        finally:
            thread.shutdown(wait=False)

    def _search(self, pattern: regex.Pattern[str], text: str, at: int, most: float) -> regex.Match[str] | None:
        most = min(most, self._seconds)
        if most <= 0:
            raise TimeoutError
        started = time.thread_time()
        try:
            return pattern.search(text, at, concurrent=True, timeout=most)
        finally:
            self._seconds -= time.thread_time() - started


def _found(pattern: regex.Pattern[str], text: str, time_left: _TimeLeft) -> Steps[list[Span]]:
    """Spans where the pattern matches, outside existing marks.

    Raises:
        TimeoutError: no time is left.
    """
    spans: list[Span] = []
    at = 0
    mark = MARK.search(text)
    while at <= len(text) and (found := (yield from time_left.search(pattern, text, at))):
        while mark is not None and mark.end() <= found.start():
            mark = MARK.search(text, mark.end())
        if mark is not None and mark.start() <= found.start():
            at = mark.end()
        elif found.end() > found.start():
            spans.append(Span(found.start(), found.end(), OWN))
            at = found.end()
        else:
            at = found.end() + 1
        yield
    return spans


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
