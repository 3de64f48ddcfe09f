"""The thread of one log: a pure function of its rows, a room, and what the rest of a view shows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from context_summarize.core.frames import thread_entry
from context_summarize.core.log import Log
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import content_text, countable_items
from context_summarize.notes.fallback import without_quoted
from context_summarize.notes.reading import Reading, read, told_by_user
from context_summarize.notes.rules import quoted_of, sign_pattern, without_foreign
from context_summarize.notes.thread import Beside, thread_text
from context_summarize.redaction import traceback_of

logger = logging.getLogger(__name__)


class Thread:
    """Quotes the rows of a log. It keeps the reading of each rendered group, which only depends on its rows.

    Args:
        signs: words of the prompt set that make a sentence a rule.
        heading: the line below which summaries quote rules; "" = the prompt set asks for none.
    """

    def __init__(self, log: Log, signs: Sequence[str] = (), heading: str = "") -> None:
        self._log, self._signs, self._heading = log, sign_pattern(signs), heading
        self._readings: dict[int, Reading] = {}
        """By the group's number. Two threads that read the same group get equal readings."""
        self._has_failed = False

    def text(self, frontier: int, room: int, whole: Set[int], summaries: Sequence[str]) -> str:
        """Returns the thread of the rendered groups before the frontier, without its frame; "" without room.

        Args:
            room: tokens that the row may take, frame included.
            whole: numbers of the messages that the rest of the view shows whole.
            summaries: the texts that it shows.
        """
        if not frontier:
            return ""
        log, readings = self._log, self.readings(0, frontier)
        letters = (sentence.letters for one in readings for sentence in one.said)
        quoted = quoted_of(letters, summaries, self._heading) if self._heading else set[str]()
        shown = _texts_of(row.raw for at, row in enumerate(log.rows) if log.number_of(at) in whole)
        beside = Beside(whole, "\n".join([*summaries, *shown]), quoted)
        return thread_text(readings, beside, room - thread_entry(log, "", frontier).tokens, log.count)

    def summary(self, text: str, first_group: int, end_group: int, thread: str) -> str:
        """Returns a summary as a view with this thread shows it.

        Rules are left out that the user of these groups never said, and the user's sentences that the thread holds.
        """
        said = [sentence.letters for one in self.readings(first_group, end_group) for sentence in one.said]
        return without_quoted(without_foreign(text, self._heading, said) if self._heading else text, thread)

    def readings(self, first: int, end: int) -> list[Reading]:
        """Returns the readings of these groups."""
        for ordinal in range(first, end):
            if ordinal not in self._readings:
                self._readings[ordinal] = self._read(ordinal)
        return [self._readings[ordinal] for ordinal in range(first, end)]

    def _read(self, ordinal: int) -> Reading:
        """Reads one group; after an error nothing of it."""
        log, group = self._log, self._log.rendered_group(ordinal)
        number = log.message_range(ordinal, ordinal + 1)[0]
        try:
            if not any(_speaks(row.raw) for row in log.rows[group.start + 1 : group.end]):
                # The first row alone: the one with the calls, or the only one. Results would take long to redact.
                group = replace(group, end=group.start + 1, answers={}, missing=())
            return read(log.read(group, log.redact), number, self._signs)
        except Exception as error:  # noqa: BLE001 - the thread quotes any text, and a request can do without it
            if not self._has_failed:
                self._has_failed = True
                trace = traceback_of(error)
                trace = log.redact(trace) if log.redact else trace
                logger.error("the thread leaves out message %d, which cannot be read: %s", number, trace)
            return Reading(number)


def _speaks(raw: JsonRow) -> bool:
    """Returns True for a row behind a call in which the user may speak."""
    return raw["role"] == "user" or told_by_user(content_text(raw.get("content"))) != ""


def _texts_of(rows: Iterable[JsonRow]) -> Iterator[str]:
    """Yields the texts of these rows."""
    return (item for row in rows for item in countable_items(row) if isinstance(item, str))
