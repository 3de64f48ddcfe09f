"""Which of the user's sentences a row of notes quotes where it has no room for all. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest

from context_summarize.notes.prose import has_digit
from context_summarize.notes.readings import Said, Sentence
from context_summarize.tokens.measure import Count

Place = tuple[int, int]
"""Of a sentence: the number of its message, and its place in it."""

SHORT_MESSAGE = 40
"""Characters of a message that says something of the one before it: "Not to Bob.", "undo it"."""
_SHORT_SENTENCE = 40
"""Characters of a sentence that leans on the one before it: "Never exceed it."."""
_COMMON = 3
"""A word that more messages hold ties no two sentences together; a figure always does."""
_PARTS = 8
"""Parts of the session that take turns, so that no part is left out."""
_FIGURE = 6.0
"""Weight of a term with a digit; that of a word is 1."""
_OVERHEAD = 10
"""Tokens added to the price of a sentence, so that a long one is not too dear beside a bare word."""
_LINE = 4
"""Tokens of a message's number and line end."""
_MOST_BOUND = 10
"""Sentences that one brings, after which corrections of corrections are left out."""
_MOST_MISSES = 50
"""Sentences in a row that find no room, after which no other is looked at."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the view shows beside the notes."""

    whole: Collection[int]
    """Numbers of the messages that it shows whole."""
    sentences: Set[str]
    """Those of its summaries, each on one line."""
    terms: Set[str]
    """Those of its summaries and of its verbatim rows; see `terms_of`."""
    values: Set[str]
    """Names and figures in these, in one spelling."""


class Words:
    """The sentences of the user's messages that may be quoted, and those that are chosen.

    Args:
        said: the messages, in their order.
        held: what the view shows beside them.
    """

    def __init__(self, said: Sequence[Said], held: Held, count: Count) -> None:
        self.said = said
        self.chosen: set[Place] = set()
        self._held, self._count = held, count
        self._places = [(one.number, place) for one in said for place in one.sentences]
        self._at = {one.number: at for at, one in enumerate(self.said)}
        self._last: dict[str, Place] = {}
        self._messages: Counter[str] = Counter()
        for one in self.said:
            terms = {term: place for place, told in one.sentences.items() for term in told.terms}
            self._messages.update(terms.keys())
            self._last |= {term: (one.number, place) for term, place in terms.items()}

    def sentence(self, place: Place) -> Sentence:
        """Returns the sentence of this place."""
        return self.said[self._at[place[0]]].sentences[place[1]]

    def take(self, places: Iterable[Place], room: int) -> int:
        """Chooses each of these with what is bound to it, as far as there is room; returns the tokens that are left."""
        misses = 0
        for place in places:
            if misses > _MOST_MISSES:
                break
            if place in self.chosen or self._is_held(place):
                continue
            unit = [one for one in self._unit(place) if one not in self.chosen and not self._is_held(one)]
            lines = {one[0] for one in unit} - {one[0] for one in self.chosen}
            price = sum(map(self._tokens, unit)) + _LINE * len(lines)
            if price <= room:
                self.chosen.update(unit)
                room -= price
                misses = 0
            else:
                misses += 1
        return room

    def openings(self, numbers: Iterable[int]) -> list[Place]:
        """Returns the first sentence of each of these messages."""
        messages = (self.said[self._at[number]] for number in numbers)
        return [(one.number, next(iter(one.sentences))) for one in messages if one.sentences]

    def holding(self, values: Sequence[str]) -> list[Place]:
        """Returns the sentences that hold these values, those of the last value first."""
        rank = {value.lower(): at for at, value in enumerate(values)}
        terms = ((place, self.sentence(place).terms) for place in self._places)
        found = {place: max((rank.get(term, -1) for term in some), default=-1) for place, some in terms}
        return sorted((place for place in found if found[place] >= 0), key=lambda place: -found[place])

    def left_out(self) -> int:
        """Returns how many sentences stand neither in the view nor among those that are chosen."""
        gone = sum(one.count - len(one.sentences) for one in self.said if one.number not in self._held.whole)
        return gone + sum(place not in self.chosen and not self._is_held(place) for place in self._places)

    def rules(self, quoted: Collection[Place]) -> list[Place]:
        """Returns the sentences with a sign, and those of the places that a summary has quoted."""
        return self._in_turn([place for place in self._places if place in quoted or self.sentence(place).has_sign])

    def ranked(self) -> list[Place]:
        """Returns every sentence: what says most, the parts of the session in turn."""
        return self._in_turn(self._places)

    def _in_turn(self, places: Sequence[Place]) -> list[Place]:
        size = math.ceil(len(places) / _PARTS) or 1
        parts = [places[at : at + size] for at in range(0, len(places), size)]
        best = [sorted(part, key=lambda place: -self._worth(self.sentence(place))) for part in reversed(parts)]
        return [place for row in zip_longest(*best) for place in row if place is not None]

    def _worth(self, sentence: Sentence) -> float:
        """Returns what a sentence says for its size: the rarer a term, the more; what the view holds says nothing."""
        new = (term for term in sentence.terms if term not in self._held.terms)
        says = sum((_FIGURE if has_digit(term) else 1.0) / self._messages[term] for term in new)
        return says / (len(sentence.text) / 4 + _OVERHEAD)

    # --- what is bound to a sentence ----------------------------------------------------------------------------------

    def _unit(self, place: Place) -> list[Place]:
        """Returns a sentence with those that go on with it, and all that corrects one of them.

        A reply brings no reply of its own, and a chain of corrections ends: else a row of short messages, or of
        figures that are shared two by two, would bring all that follow.
        """
        number, at = place
        message = self.said[self._at[number]].sentences
        before = at - 1 if len(message[at].text) <= _SHORT_SENTENCE else at
        first = at
        while first - 1 in message and not message[first].begins:
            first -= 1
        found = dict.fromkeys((number, one) for one in (first, before, at, at + 1) if one in message)
        left, replies = [*found], set[Place]()
        while left:
            one = left.pop()
            after = [] if one in replies else self._reply(one)
            replies.update(after)
            renewals = self._renewal(one) if len(found) < _MOST_BOUND else []
            new = [other for other in (*after, *renewals) if other not in found]
            found |= dict.fromkeys(new)
            left += new
        return [*found]

    def _reply(self, place: Place) -> list[Place]:
        """Returns the user's next message if it is short."""
        following = self._at[place[0]] + 1
        if following == len(self.said):
            return []
        after = self.said[following]
        if sum(len(told.text) for told in after.sentences.values()) > SHORT_MESSAGE:
            return []
        return [(after.number, at) for at in after.sentences]

    def _renewal(self, place: Place) -> list[Place]:
        """Returns the newest later sentence with the rarest shared term."""
        terms = [term for term in self.sentence(place).terms if self._last[term] > place]
        rare = [term for term in terms if self._messages[term] <= _COMMON or has_digit(term)]
        if not rare:
            return []
        return [self._last[min(rare, key=lambda term: (self._messages[term], not has_digit(term), -len(term)))]]

    def _is_held(self, place: Place) -> bool:
        return place[0] in self._held.whole or self.sentence(place).text in self._held.sentences

    def _tokens(self, place: Place) -> int:
        sentence = self.sentence(place)
        sentence.tokens = sentence.tokens or self._count(sentence.text) + 1
        return sentence.tokens
