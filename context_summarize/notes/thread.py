"""The text of the thread: the user's sentences, the agent's closing words, and names in calls, within a room."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby, pairwise, zip_longest

from context_summarize.notes.prose import GAP, has_digit
from context_summarize.notes.reading import Reading, Sentence
from context_summarize.tokens.measure import Count
from context_summarize.transcript.marks import mark

NAMES = "Names in earlier calls, newest first: "
_MOST_NAMES, _NAMES = 350, 0.2
"""Tokens of the line of names, and its share of the room; the smaller one counts."""
_ENDS = 0.15
"""Share of the room that is reserved for the ends of turns."""
_SHORT_MESSAGE = 40
"""A message of at most this many characters belongs to the one before it: "Not to Bob.", "undo it"."""
_PARTS = 8
"""Parts of the session that take turns, so that no part is left out."""
_FIGURE = 6.0
"""Weight of a term with a digit, beside 1 for a word."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What the rest of the view shows."""

    whole: Set[int] = frozenset()
    """Numbers of the messages that it shows whole."""
    text: str = ""
    """All its words."""
    quoted: Set[str] = frozenset()
    """The sentences, folded, that its summaries quote as rules."""


def thread_text(readings: Sequence[Reading], beside: Beside, room: int, count: Count) -> str:
    """Returns the lines of the thread, of at most `room` tokens; "" if there is nothing to quote."""
    newest_first = dict.fromkeys(name for one in reversed(readings) for name in reversed(one.names))
    unseen = (name for name in newest_first if name not in beside.text)
    names = _names(unseen, min(_MOST_NAMES, int(room * _NAMES)), count)
    said = [sentence for one in readings for sentence in one.said]
    room -= count(_left_out(len(said))) + count(names) + 2
    for_ends = int(room * _ENDS)
    words = _Words(said, beside, room - for_ends, count)
    words.choose()
    words.room += for_ends
    ends = _ends(readings, beside, words, count)
    lines = [*_lines(words, ends)]
    if lines and words.left:
        lines.append(_left_out(len(words.left)))
    return "\n".join([*lines, names] if names else lines)


def _left_out(sentences: int) -> str:
    return f"({sentences:,} more of the user's sentences are left out.)"


def _names(names: Iterable[str], room: int, count: Count) -> str:
    room -= count(NAMES)
    taken: list[str] = []
    for name in names:
        room -= count(name) + 1
        if room < 0:
            break
        taken.append(name)
    return NAMES + ", ".join(taken) if taken else ""


def _ends(readings: Sequence[Reading], beside: Beside, words: _Words, count: Count) -> dict[int, Reading]:
    """Returns the newest ends of turns that fit, by the user's messages before them; chooses words of these too."""
    ends, asked = dict[int, Reading](), 0
    for one in readings:
        if one.by_agent:
            ends.pop(asked, None)  # the turn goes on, so what was said before is not its end
        if one.closing and asked:
            ends[asked] = one
        asked = one.asked or asked
    taken = dict[int, Reading]()
    for asked, end in reversed(ends.items()):
        if end.number not in beside.whole and end.closing not in beside.text:
            size = count(end.closing) + 2 * words.mark
            if size > words.room:
                break
            words.room -= size
            words.take_first_of(asked)
            taken[asked] = end
    return taken


def _lines(words: _Words, ends: Mapping[int, Reading]) -> Iterator[str]:
    """Yields a line for each message of the user that is quoted or answered, and one for the end of its turn."""
    by_message = groupby(words.chosen, key=lambda one: one.number)
    quoted = {number: _message([*said], words.last_place(number)) for number, said in by_message}
    for number in sorted({*quoted, *ends}):
        # The number is written even if another row shows the message: else the words below seem to answer another.
        yield f"{mark(number)} {quoted.get(number, GAP)}"
        if number in ends:  # on a line of its own: the user's words never begin a line, so they cannot imitate it
            yield f"→ {mark(ends[number].number)} {ends[number].closing}"


def _message(said: Sequence[Sentence], last_place: int) -> str:
    """Returns sentences of one message, with a mark for each gap before, between and behind them."""
    text, before = "(in a result)" if said[0].in_result else "", 0
    for one in said:
        text += f" {one.text}" if one.place == before + 1 else f" {GAP} {one.text}"
        before = one.place
    return (text if before == last_place else f"{text} {GAP}").strip()


class _Words:
    """The user's sentences, and those of them that are chosen for quotation."""

    def __init__(self, said: Sequence[Sentence], beside: Beside, room: int, count: Count) -> None:
        self._said, self._quoted, self.room, self._count = said, beside.quoted, room, cache(count)
        self.mark = count(f"\n{mark(said[-1].number)} {GAP} {GAP}") if said else 0
        """Tokens of a line's mark and end, and of gaps."""
        self.left = {at for at, one in enumerate(said) if one.number not in beside.whole}
        """Indexes of the sentences that are neither in the view nor chosen."""
        self._taken: set[int] = set()
        messages = groupby(range(len(said)), key=lambda at: said[at].number)
        self._messages = {number: [*found] for number, found in messages}
        self._following = dict(pairwise(self._messages))
        found = ({term for at in message for term in said[at].terms} for message in self._messages.values())
        self._times = Counter(chain.from_iterable(found))
        """How many messages contain a term."""

    @property
    def chosen(self) -> list[Sentence]:
        """The chosen sentences in their order."""
        return [self._said[at] for at in sorted(self._taken)]

    def last_place(self, number: int) -> int:
        """Returns the place of the last sentence of a message."""
        return self._said[self._messages[number][-1]].place

    def choose(self) -> None:
        """Chooses rules first, then others, as far as there is room."""
        rules = [at for at, one in enumerate(self._said) if one.is_rule or one.letters in self._quoted]
        for at in chain(self._in_turn(rules), self._in_turn(range(len(self._said)))):
            if at in self.left:
                self._take(at)

    def take_first_of(self, number: int) -> None:
        """Chooses the first sentence of a message, if there is room."""
        if number in self._messages and self._messages[number][0] in self.left:
            self._take(self._messages[number][0])

    def _take(self, at: int) -> None:
        """Chooses a sentence, the next one of its message, and the next message if that is short, if they fit."""
        number = self._said[at].number
        following = self._following.get(number)
        reply = [] if following is None else self._messages[following]
        is_short = sum(len(self._said[one].text) for one in reply) <= _SHORT_MESSAGE
        unit = self.left & {at, *{at + 1}.intersection(self._messages[number]), *(reply if is_short else [])}
        price = sum(self._count(self._said[one].text) + 1 for one in unit)
        numbers = {self._said[one].number for one in unit}
        price += self.mark * sum(self._taken.isdisjoint(self._messages[one]) for one in numbers)
        if price <= self.room:
            self._taken |= unit
            self.left -= unit
            self.room -= price

    def _in_turn(self, sentences: Sequence[int]) -> list[int]:
        """Returns the worthiest sentence of each part of the session, the newest part first; then the second ones."""
        size = math.ceil(len(sentences) / _PARTS) or 1
        parts = [sentences[at : at + size] for at in range(0, len(sentences), size)]
        best = [sorted(part, key=self._worth, reverse=True) for part in reversed(parts)]
        return [at for at in chain.from_iterable(zip_longest(*best)) if at is not None]

    def _worth(self, at: int) -> float:
        """Returns the worth of a sentence for its size: terms of few messages count more, and figures most."""
        sentence = self._said[at]
        worth = sum((_FIGURE if has_digit(term) else 1.0) / self._times[term] for term in sentence.terms)
        return worth / (len(sentence.text) / 4 + self.mark)
