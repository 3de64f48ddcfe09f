"""The notes of one log: reads each summarised group once, in order, and writes the row of notes from these readings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from context_summarize.core.frames import show_node, show_notes
from context_summarize.core.log import Log
from context_summarize.core.nodes import Node, Summary, View
from context_summarize.core.render import render
from context_summarize.messages.reading import rough_size
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import countable_items
from context_summarize.notes.fallback import AGENT, USER
from context_summarize.notes.forms import spelled, spelled_values, values_in
from context_summarize.notes.prose import sentences_of
from context_summarize.notes.readings import Readings
from context_summarize.notes.row import write
from context_summarize.notes.rules import is_foreign, quoted_lines, verified
from context_summarize.notes.words import Given, Place
from context_summarize.redaction import traceback_of
from context_summarize.transcript.escaping import Frame
from context_summarize.transcript.rendered import RenderedRow, counted

logger = logging.getLogger(__name__)

_MOST_RESULTS = 1_000_000
"""Characters of the newest groups that one compaction reads with tool results. Of older ones it reads the first row."""
_LONG_ROW = 125_000
"""Rows are cut as for a segment of this many tokens. So only the two ends of a very long row are read."""
_MOST_LOST = 500
"""Values that are remembered after the summary that contained them has gone."""
_FRAME_TOKENS = 50
"""Estimate of the tokens of the row's frame."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Counts the exact values that a compaction keeps and loses: names in calls, names and figures of the user."""

    kept: int = 0
    lost: int = 0
    """Those that the request showed before the compaction, and does not show after it."""
    examples: tuple[str, ...] = ()
    """Up to three of the lost ones, the newest first."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of a summary under its heading for rules."""

    at: int
    """Number of the line, from 0."""
    text: str
    sentences: Sequence[tuple[Place, str]]
    """The sentences of the user that it quotes."""
    is_foreign: bool
    """True if no message of the user in this part says anything like it. False also if some are not known any more."""


class NotesLog:
    """Reads rows after redaction, and keeps the readings while the log grows. Threads take turns.

    Args:
        readings: empty readings.
        heading: the line below which summaries quote rules; "" = the prompt set asks for none.
        frame: the frame of a shown summary.
    """

    def __init__(self, log: Log, readings: Readings, heading: str, frame: Frame) -> None:
        self._log, self._readings, self._heading, self._frame = log, readings, heading, frame
        self._lock = threading.Lock()
        """Held while rows are read: the thread of a cancelled request may still run beside that of the next one."""
        self._next_group = 0
        self._has_failed = False

    def write(
        self,
        view: View,
        before: View,
        earlier: Sequence[tuple[Node, Summary]],
        room: int,
        operations: Sequence[str],
    ) -> tuple[View, Kept]:
        """Returns the view with notes of at most `room` tokens, and the counts of exact values that it keeps.

        Args:
            view: the new view. Its summaries are uncut; its places and lost values are still those of `before`.
            before: the view before it.
            earlier: summaries that this view merges or drops.
            operations: lines for the host's running jobs.
        """
        log, readings = self._log, self._read(view.frontier)
        shown = [(item.node, item.summary) for item in view.shown]
        rules = [self._rules(node, one, readings) for node, one in (*shown, *earlier)]
        places = {*view.places}
        for line in chain.from_iterable(rules):
            places.update(place for place, _ in line.sentences)
        texts = [_without(lines, one.text) for (_, one), lines in zip(shown, rules, strict=False)]
        given = self._rest_of_view(view, texts)
        gone = values_in("\n".join(one.text for _, one in earlier))
        earlier_values = dict.fromkeys([*view.lost_values, *map(spelled, gone)])
        lost = [value for value in earlier_values if value not in given.values]
        clean = [*map(log.redact, operations)] if log.redact else operations
        given = replace(given, rules=places, lost_values=lost, operations=clean)
        text = write(readings, given, room - _FRAME_TOKENS, log.count)
        parts = [_shown(one.text, lines, text) for (_, one), lines in zip(shown, rules, strict=False)]
        made = replace(
            view,
            shown=tuple(show_node(log, *one, self._frame, part) for one, part in zip(shown, parts, strict=True)),
            notes=show_notes(log, text, view.frontier) if text else None,
            places=tuple(sorted(places)),
            lost_values=tuple(lost[-_MOST_LOST:]),
        )
        return made, self._kept(readings, before, given.values | spelled_values("\n".join([*parts, text])))

    def _rest_of_view(self, view: View, summaries: Sequence[str]) -> Given:
        rows = {entry.origin: entry.row for entry in render(self._log, view).entries if entry.origin is not None}
        numbers = [self._log.number_of(origin) for origin in rows if origin not in view.shortened]
        lines = [line.removeprefix(USER).removeprefix(AGENT) for text in summaries for line in text.split("\n")]
        return Given(
            whole={number for number in numbers if number is not None},
            sentences={sentence for line in lines for sentence in sentences_of(line)},
            values=spelled_values("\n".join([*summaries, *_texts_of(rows.values())])),
        )

    def _kept(self, readings: Readings, before: View, shown: Set[str]) -> Kept:
        """Counts which of the values that a request with the view `before` showed are still in `shown`.

        They are the values of the rows summarised since, and those that stood before the verbatim part of that request.
        """
        first = self._log.message_range(0, before.frontier)[1] + 1 if before.frontier else 1
        said = [*_texts_of(entry.row for entry in render(self._log, before).head if entry.origin is not None)]
        said += [item.text for item in before.shown] + ([before.notes.text] if before.notes else [])
        earlier = spelled_values("\n".join(said))
        wanted = {value: None for value in readings.values(1) if value in earlier}
        wanted |= dict.fromkeys(readings.values(first))
        lost = [value for value in wanted if value not in shown]
        return Kept(len(wanted) - len(lost), len(lost), tuple(reversed(lost[-3:])))

    def _read(self, frontier: int) -> Readings:
        """Reads the rendered groups before the frontier. If many come at once, it skips the older results."""
        with self._lock:
            near, left = frontier, _MOST_RESULTS
            while near > self._next_group and left > 0:
                near -= 1
                group = self._log.rendered_group(near)
                left -= sum(rough_size(row.raw) for row in self._log.rows[group.start : group.end])
            for ordinal in range(self._next_group, frontier):
                self._next_group = ordinal + 1
                self._take_in(ordinal, has_results=ordinal >= near)
            return self._readings.until(self._log.message_range(0, frontier)[1] if frontier else 0)

    def _take_in(self, ordinal: int, *, has_results: bool) -> None:
        """Reads one group. After an error nothing of it is kept."""
        number = self._log.message_range(ordinal, ordinal + 1)[0]
        try:
            self._readings.read(self._rows(ordinal, number, has_results=has_results))
        except Exception as error:  # noqa: BLE001 - notes quote any text, and a request can do without them
            self._readings = self._readings.until(number - 1)
            if not self._has_failed:
                self._has_failed = True
                trace = traceback_of(error)
                trace = self._log.redact(trace) if self._log.redact else trace
                logger.error("the notes leave out message %d, which cannot be read: %s", number, trace)

    def _rows(self, ordinal: int, number: int, *, has_results: bool) -> list[RenderedRow]:
        group = self._log.rendered_group(ordinal)
        if not has_results:
            # The first row alone: the one with the calls, or the only one.
            group = replace(group, end=group.start + 1, answers=(), missing=())
        return self._log.render(group, number=number, segment_tokens=_LONG_ROW, redact=self._log.redact)

    def _rules(self, node: Node, summary: Summary, readings: Readings) -> list[_Rule]:
        """Returns the lines that a summary quotes as rules, looked up in the user's messages that it represents."""
        if not self._heading or summary.fallback:
            return []
        lines = list(quoted_lines(summary.text, self._heading))
        if not lines:
            return []
        first, last = self._log.message_range(node.first_group, node.end_group)
        said = [one for one in readings.said if first <= one.number <= last]
        letters = [sentence.letters for sentence in said]
        is_whole = first > readings.gone_until
        found: list[_Rule] = []
        for at, line in lines:
            quoted = [said[one] for one in sorted(verified(line, letters))]
            sentences = [((one.number, one.place), one.text) for one in quoted]
            found.append(_Rule(at, line, sentences, is_whole and not sentences and is_foreign(line, letters)))
        return found


def _texts_of(rows: Iterable[JsonRow]) -> Iterator[str]:
    """Yields the texts of these rows."""
    return (item for row in rows for item in countable_items(row) if isinstance(item, str))


def _without(rules: Sequence[_Rule], text: str) -> str:
    gone = {rule.at for rule in rules}
    return "\n".join(line for at, line in enumerate(text.split("\n")) if at not in gone)


def _shown(summary: str, rules: Sequence[_Rule], notes: str) -> str:
    """Returns a summary without the rules that the notes quote, and a count in place of those the user never said."""
    quoted = [rule for rule in rules if rule.sentences and all(text in notes for _, text in rule.sentences)]
    foreign = [rule for rule in rules if rule.is_foreign]
    removed = {rule.at: rule.text for rule in (*quoted, *foreign)}
    lines: list[str] = []
    for at, line in enumerate(summary.split("\n")):
        before = line.rstrip().removesuffix(removed.get(at, "")).rstrip()
        if at not in removed:
            lines.append(line)
        elif any(map(str.isalpha, before)):  # the rule is on the heading's own line: only the heading stays
            lines.append(before)
        if foreign and at == foreign[-1].at:
            lines.append(f"({counted(len(foreign), 'line')} left out: no message of the user in this part says so.)")
    return "\n".join(lines)
