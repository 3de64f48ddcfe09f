"""The text of the row of notes: quotations and names, each part within its room. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from context_summarize.notes.forms import spelled, values_in
from context_summarize.notes.prose import GAP, cut, marked
from context_summarize.notes.readings import Quotation, Readings
from context_summarize.notes.words import Held, Place, Words
from context_summarize.tokens.measure import Count

_WORDS = "Quoted from the user's messages (they may quote others); behind → the agent's words at the end of the turn:"
_UNDER_WAY = "Under way, as the host says: "
_WRITTEN = "Paths that calls carried content to, newest first: "
_RUNS = "Newest runs of repeated commands: "
_NAMED = "Names in earlier calls, newest first: "
_USED = "Lines with a value that was named again later, newest first:\n"
HEADINGS = (_WORDS, _UNDER_WAY, _WRITTEN, _RUNS, _NAMED, _USED)
_CALLS, _NAMES, _LINES, _ENDS = 0.2, 0.2, 0.25, 0.15
"""Shares of the room that calls and names may take; the share of the rest for how turns ended."""
_LONG_COMMAND = 120
"""Characters of a command as it is quoted."""
_MARK = 8
"""Tokens of what stands before the words that ended a turn."""
_LEFT_OUT = 12
"""Tokens of the line that counts what is left out."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is quoted before all else."""

    places: Collection[Place] = ()
    """Sentences that a model's summary quotes as rules."""
    told: Sequence[str] = ()
    """Names and figures that summaries have told which are gone, the newest last."""
    operations: Sequence[str] = ()
    """What the host says is under way."""


def write(readings: Readings, held: Held, wanted: Wanted, room: int, count: Count) -> str:
    """Returns the lines of the row, of at most `room` tokens; "" where there is nothing to quote."""
    calls = _calls(readings, wanted.operations, int(room * _CALLS), count)
    called = held.values | _spelled(calls)
    new = dict.fromkeys(one.text for one in reversed(readings.named) if one.text not in called)
    names = _listed(_NAMED, new, int(room * _NAMES), count)
    room -= sum(count(part) + 1 for part in (calls, names) if part)
    reserved = _used(readings, wanted.told, called, int(room * _LINES), count)
    words = _words(readings, held, wanted, room - count(reserved), count)
    room -= count(words) + 1
    used = _used(readings, wanted.told, called | _spelled(words), room, count)
    return "\n".join(part for part in (words, calls, names, used) if part)


def _spelled(text: str) -> set[str]:
    return {*map(spelled, values_in(text))}


def _listed(heading: str, items: Iterable[str], room: int, count: Count, between: str = ", ") -> str:
    """Returns the items behind their heading, up to the first one that finds no room."""
    taken: list[str] = []
    room -= count(heading)
    for item in items:
        room -= count(item) + 1
        if room < 0:
            break
        taken.append(item)
    return heading + between.join(taken) if taken else ""


# --- the user's words, and how turns ended ----------------------------------------------------------------------------


def _words(readings: Readings, held: Held, wanted: Wanted, room: int, count: Count) -> str:
    words = Words(readings.said, held, count)
    room -= count(_WORDS) + _LEFT_OUT
    turns = [one for one in _turns(readings) if one[1].number not in held.whole and one[1].text not in held.sentences]
    ends, left = _ended(turns, int(room * _ENDS), count)
    room -= int(room * _ENDS) - left
    for places in (words.rules(wanted.places), words.openings(ends), words.holding(wanted.told), words.ranked()):
        room = words.take(places, room)
    ends |= _ended([one for one in turns if one[0] not in ends], room, count)[0]
    lines = [*_said(words, ends)]
    if lines and (gone := words.left_out()):
        lines.append(f"({gone:,} more of the user's sentences are left out.)")
    return "\n".join([_WORDS, *lines]) if lines else ""


def _turns(readings: Readings) -> Iterator[tuple[int, Quotation]]:
    """Yields the number of each message of the user and the words that ended its turn, the newest first."""
    numbers = [one.number for one in readings.said]
    found: dict[int, Quotation] = {}
    for end in readings.ends:
        if at := bisect_right(numbers, end.number):
            found[numbers[at - 1]] = end
    yield from ((number, end) for number, end in reversed(found.items()) if end.text)


def _ended(turns: Iterable[tuple[int, Quotation]], room: int, count: Count) -> tuple[dict[int, Quotation], int]:
    """Returns the turns whose ends find room, and the room that is left."""
    ends = dict[int, Quotation]()
    for number, end in turns:
        if (price := count(end.text) + _MARK) <= room:
            ends[number] = end
            room -= price
    return ends, room


def _said(words: Words, ends: Mapping[int, Quotation]) -> Iterator[str]:
    """Yields a line for each message that is quoted, and one for the end of its turn."""
    chosen: dict[int, list[int]] = {}
    for number, at in sorted(words.chosen):
        chosen.setdefault(number, []).append(at)
    for message in words.said:
        text, before = "", -1
        for at in chosen.get(message.number, ()):
            sentence = message.sentences[at]
            is_next = before >= 0 and at == before + 1 and sentence.follows
            text += (f" {GAP} " if not is_next and (before >= 0 or not sentence.begins) else " ") + sentence.text
            before = at
        following = message.sentences.get(before + 1) if text else None
        text += f" {GAP}" if following is not None and not following.begins else ""
        end = ends.get(message.number)
        if text or end is not None:
            yield f"#{message.number}{text or f' {GAP}'}"
        if end is not None:  # on a line of its own, which no word of the user's can begin
            yield f"→ #{end.number} {end.text}"


# --- calls, and lines that were used ----------------------------------------------------------------------------------


def _calls(readings: Readings, operations: Sequence[str], room: int, count: Count) -> str:
    paths = {one.source: _path(one) for one in readings.written}
    times = Counter(one.source for one in readings.runs)
    runs = {one.source: _run(one) for one in readings.runs if times[one.source] > 1}
    parts: list[str] = []
    lists: list[tuple[str, Sequence[str]]] = [(_UNDER_WAY, operations)]
    lists += [(_WRITTEN, _newest(readings.written, paths)), (_RUNS, _newest(readings.runs, runs))]
    filled = [one for one in lists if one[1]]
    for at, (heading, items) in enumerate(filled):
        part = _listed(heading, items, room // (len(filled) - at), count, "; ")
        room -= count(part)
        parts += [part] if part else []
    return "\n".join(parts)


def _newest(found: Sequence[Quotation], told: Mapping[str, str]) -> list[str]:
    """Returns what is told of each source, the newest first."""
    sources = dict.fromkeys(one.source for one in reversed(found))
    return [told[source] for source in sources if source in told]


def _path(one: Quotation) -> str:
    return f"{one.source} (#{one.number}: {marked(one.text)})" if one.text else f"{one.source} (#{one.number})"


def _run(one: Quotation) -> str:
    return f"{marked(cut(one.source, _LONG_COMMAND))} (#{one.number})" + (f": {marked(one.text)}" if one.text else "")


def _used(readings: Readings, told: Sequence[str], shown: Set[str], room: int, count: Count) -> str:
    """Returns the lines whose values stand nowhere else in the view: those that a summary told, then the newest use."""
    lines: list[str] = []
    seen = {*shown}
    named = [(one, readings.line(one)) for one in reversed(told)]
    named += [(one.value, one.line) for one in reversed(readings.used)]
    for value, line in named:
        if line is not None and spelled(value) not in seen:
            lines.append(f"#{line.number} {line.source}: {marked(line.text)}")
            seen |= _spelled(line.text)
    return _listed(_USED, lines, room, count, "\n")
