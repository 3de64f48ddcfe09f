"""The text of the row of notes: quotations and names, each part within its room. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from context_summarize.notes.calls import Carried
from context_summarize.notes.forms import spelled, spelled_values
from context_summarize.notes.prose import GAP, cut, marked
from context_summarize.notes.readings import Line, Readings, Sentence
from context_summarize.notes.words import Given, Words
from context_summarize.tokens.measure import Count

_WORDS = "Quoted from the user's messages (they may quote others); behind → the agent's words at the end of the turn:"
_UNDER_WAY = "Under way, as the host says: "
_WRITTEN = "Paths that calls carried content to, newest first: "
_RUNS = "Newest runs of repeated commands: "
_NAMED = "Names in earlier calls, newest first: "
_USED = "Lines with a value that was named again later, newest first:"
HEADINGS = (_WORDS, _UNDER_WAY, _WRITTEN, _RUNS, _NAMED, _USED)
_CALLS = _NAMES = 0.2
"""Shares of the room that calls, and names in them, may take."""
_LOST = 0.25
"""Share of the rest for lines with a value of a summary that is gone."""
_ENDS = 0.15
"""Share of what then remains that is reserved for the ends of turns."""
_LONG_COMMAND = 120
"""Characters of a quoted command."""
_MARK = 8
"""Tokens of the mark before the words that ended a turn."""
_LEFT_OUT = 12
"""Tokens of the line that counts the sentences left out."""


def write(readings: Readings, given: Given, room: int, count: Count) -> str:
    """Returns the lines of the row, of at most `room` tokens; "" if there is nothing to quote."""
    calls = _calls(readings.calls, given.operations, int(room * _CALLS), count)
    shown = {*given.values, *spelled_values(calls)}
    newest_first = (name for call in reversed(readings.calls) for name in reversed(call.names))
    new = dict.fromkeys(name for name in newest_first if name not in shown)
    names = _listed(_NAMED, new, int(room * _NAMES), count)
    room -= sum(count(part) + 1 for part in (calls, names) if part)
    words = Words(readings.said, given, count)
    # A lost value gets a line of its own only if no sentence of the user contains it.
    known = {spelled(value): line for value, line in (readings.unnamed | readings.named_again).items()}
    without_sentence = (value for value in reversed(given.lost_values) if value.lower() not in words.last)
    lost = {value: known[value] for value in without_sentence if value in known}
    lines = _fitting(_lines(lost, shown), int(room * _LOST), count)
    room -= count("\n".join([_USED, *lines])) + 1
    said = _words(words, readings, given, room, count)
    used = dict(reversed(readings.named_again.items()))
    lines += _fitting(_lines(used, shown | spelled_values(said)), room - count(said) - 1, count)
    if lines:
        lines = [_USED, *lines]
    return "\n".join(part for part in (said, calls, names, *lines) if part)


def _fitting(items: Iterable[str], room: int, count: Count) -> list[str]:
    """Returns the items before the first one that finds no room."""
    taken: list[str] = []
    for item in items:
        room -= count(item) + 1
        if room < 0:
            break
        taken.append(item)
    return taken


def _listed(heading: str, items: Iterable[str], room: int, count: Count, between: str = ", ") -> str:
    """Returns the items that find room, after their heading."""
    taken = _fitting(items, room - count(heading), count)
    return heading + between.join(taken) if taken else ""


def _lines(found: Mapping[str, Line], shown: set[str]) -> Iterator[str]:
    """Yields the lines of values that are not in `shown`, and adds the values of each yielded line to this set."""
    for value, line in found.items():
        if spelled(value) not in shown:
            yield f"#{line.number} {line.who}: {marked(line.text)}"
            shown |= spelled_values(line.text)


def _words(words: Words, readings: Readings, given: Given, room: int, count: Count) -> str:
    """Returns the quotations from the user's messages, and the ends of turns."""
    room -= count(_WORDS) + _LEFT_OUT
    for_ends = int(room * _ENDS)
    room -= for_ends
    said = readings.said
    rules = [at for at, one in enumerate(said) if one.has_sign or (one.number, one.place) in given.rules]
    lost = {value.lower() for value in given.lost_values}
    with_lost = [at for at, one in enumerate(said) if not lost.isdisjoint(one.terms)]
    # Rules come first, then sentences with a lost value, the newest first, then all others.
    for sentences in (words.in_turn(rules), with_lost[::-1], words.in_turn(range(len(said)))):
        room = words.take(sentences, room)
    ends = _ends(words, readings, given, room + for_ends, count)
    lines = [*_said(words, readings, ends)]
    if lines and (left_out := readings.gone + words.left_out()):
        lines.append(f"({left_out:,} more of the user's sentences are left out.)")
    return "\n".join([_WORDS, *lines]) if lines else ""


def _ends(words: Words, readings: Readings, given: Given, room: int, count: Count) -> dict[int, Line]:
    """Returns the ends of turns that fit, by the user's message; also chooses the first sentence of that message."""
    ends: dict[int, Line] = {}
    for asked, end in reversed(readings.ends.items()):
        if not end.text or end.number in given.whole or end.text in given.sentences:
            continue
        room -= count(end.text) + _MARK
        if room < 0:
            break
        ends[asked] = end
        room = words.take(words.messages.get(asked, [])[:1], room)
    return ends


def _said(words: Words, readings: Readings, ends: Mapping[int, Line]) -> Iterator[str]:
    """Yields a line for each message of the user that is quoted or answered, and one for the end of its turn."""
    chosen = groupby(sorted(words.chosen), key=lambda at: readings.said[at].number)
    quoted = {number: _message(readings.said, [*found]) for number, found in chosen}
    for number in sorted({*quoted, *ends}):
        # The number is written even if another row shows the message: else the words below seem to answer another.
        yield f"#{number} {quoted.get(number, GAP)}"
        if number in ends:  # on a line of its own: the user's words never begin a line, so they cannot imitate it
            yield f"→ #{ends[number].number} {ends[number].text}"


def _message(said: Sequence[Sentence], chosen: Sequence[int]) -> str:
    """Returns the chosen sentences of one message, with a mark for each gap between them."""
    parts: list[str] = []
    before = None
    for at in chosen:
        place = said[at].place
        if before is not None and place != before + 1:
            parts.append(GAP)
        parts.append(said[at].text)
        before = place
    return " ".join(parts)


def _calls(calls: Sequence[Carried], operations: Sequence[str], room: int, count: Count) -> str:
    """Returns the running jobs, the newest runs (in half of the room left), and the written paths."""
    times = Counter(call.command for call in calls)
    written: dict[str, str] = {}
    runs: dict[str, str] = {}
    for call in reversed(calls):
        result = f": {marked(call.result)}" if call.result else ""
        for path in call.paths:
            written.setdefault(path, f"{path} (#{call.number}{result})")
        if call.command and times[call.command] > 1:
            runs.setdefault(call.command, f"{marked(cut(call.command, _LONG_COMMAND))} (#{call.number}){result}")
    parts: list[str] = []
    lists = ((_UNDER_WAY, operations, 1), (_RUNS, runs.values(), 2), (_WRITTEN, written.values(), 1))
    for heading, items, divisor in lists:
        listed = _listed(heading, items, room // divisor, count, "; ")
        room -= count(listed)
        parts += [listed] if listed else []
    return "\n".join(parts)
