"""Chooses the user's sentences that the notes quote if there is no room for all. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain, groupby, pairwise, zip_longest

from context_summarize.notes.prose import has_digit
from context_summarize.notes.readings import Sentence
from context_summarize.tokens.measure import Count

Place = tuple[int, int]
"""The place of a sentence: the number of its message, and the sentence's number in it."""

SHORT_MESSAGE = 40
"""A message of at most this many characters belongs to the one before it: "Not to Bob.", "undo it"."""
_COMMON = 3
"""A word in more messages than this does not connect two sentences; a figure always does."""
_PARTS = 8
"""Parts of the session that take turns, so that no part is left out."""
_FIGURE = 6.0
"""Weight of a term with a digit; that of a word is 1."""
_OVERHEAD = 10
"""Tokens added to each sentence's size, so that a single word is not worth more than a long sentence."""
_LINE = 4
"""Tokens of a message's number and line end."""
_MOST_BOUND = 10
"""A sentence brings corrections along until so many sentences are together; see `_unit`."""
_MOST_MISSES = 50
"""After more misses in a row than this, it tries no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The rest of the view, and the values and sentences that the notes prefer."""

    whole: Collection[int] = ()
    """Numbers of the messages that the view shows whole."""
    sentences: Set[str] = frozenset()
    """Sentences of the view's summaries, each on one line."""
    values: Set[str] = frozenset()
    """Names and figures in the view's summaries and verbatim rows, in one spelling."""
    rules: Collection[Place] = ()
    """Places of the sentences that a model's summary quotes as rules."""
    lost_values: Sequence[str] = ()
    """Names and figures of summaries that are gone, the newest last."""
    operations: Sequence[str] = ()
    """The host's running jobs."""


class Words:
    """The user's sentences, by their indexes, and those of them that are chosen for quotation."""

    def __init__(self, said: Sequence[Sentence], given: Given, count: Count) -> None:
        self._said, self._count = said, count
        self._is_shown = [one.number in given.whole or one.text in given.sentences for one in said]
        self.chosen: set[int] = set()
        self.last = {term: at for at, one in enumerate(said) for term in one.terms}
        """The newest sentence with each term."""
        messages = groupby(range(len(said)), key=lambda at: said[at].number)
        self.messages = {number: [*found] for number, found in messages}
        """The sentences of each message, by its number."""
        self._following = dict(pairwise(self.messages))
        self._times: Counter[str] = Counter()
        """How many messages contain a term."""
        for message in self.messages.values():
            self._times.update({term for at in message for term in said[at].terms})

    def take(self, sentences: Iterable[int], room: int) -> int:
        """Chooses these sentences and those they bring, as far as there is room; returns the tokens that are left."""
        misses = 0
        for at in sentences:
            if misses > _MOST_MISSES:
                break
            if at in self.chosen or self._is_shown[at]:
                continue
            unit = [one for one in self._unit(at) if one not in self.chosen and not self._is_shown[one]]
            lines = {self._said[one].number for one in unit} - {self._said[one].number for one in self.chosen}
            price = sum(self._count(self._said[one].text) + 1 for one in unit) + _LINE * len(lines)
            if price <= room:
                self.chosen.update(unit)
                room -= price
                misses = 0
            else:
                misses += 1
        return room

    def left_out(self) -> int:
        """Returns how many sentences are neither in the view nor chosen."""
        return sum(not is_shown and at not in self.chosen for at, is_shown in enumerate(self._is_shown))

    def in_turn(self, sentences: Sequence[int]) -> list[int]:
        """Returns the worthiest sentence of each part of the session, the newest part first; then the second ones."""
        size = math.ceil(len(sentences) / _PARTS) or 1
        parts = [sentences[at : at + size] for at in range(0, len(sentences), size)]
        best = [sorted(part, key=self._worth, reverse=True) for part in reversed(parts)]
        in_turn = chain.from_iterable(zip_longest(*best))  # which fills shorter parts up with None
        return [at for at in in_turn if at is not None]

    def _worth(self, at: int) -> float:
        """Returns the worth of a sentence for its size: rare terms and figures count more.

        A word counts 1, a figure 6, divided by the number of messages that contain it. If two messages contain "use"
        and "port", and one contains "9443", "Use port 9443." is worth 7 / (10 + its length in tokens).
        """
        sentence = self._said[at]
        worth = sum((_FIGURE if has_digit(term) else 1.0) / self._times[term] for term in sentence.terms)
        return worth / (len(sentence.text) / 4 + _OVERHEAD)

    def _unit(self, at: int) -> list[int]:
        """Returns a sentence, the next one of its message, and the later sentences that may correct one of them.

        A reply brings no reply of its own, and chains of corrections have an end. Otherwise short messages in a row, or
        figures that each link two messages, would bring all later ones.
        """
        unit = [one for one in (at, at + 1) if one in self.messages[self._said[at].number]]
        replies: set[int] = set()
        for one in unit:  # the loop also visits the sentences that it appends
            corrections = self._renewal(one) if len(unit) < _MOST_BOUND else []
            if one not in replies:
                reply = self._reply(one)
                replies.update(reply)
                corrections += reply
            unit += [other for other in corrections if other not in unit]
        return unit

    def _reply(self, at: int) -> list[int]:
        """Returns the user's next message if it is short."""
        following = self._following.get(self._said[at].number)
        reply = [] if following is None else self.messages[following]
        return reply if sum(len(self._said[one].text) for one in reply) <= SHORT_MESSAGE else []

    def _renewal(self, at: int) -> list[int]:
        """Returns the newest later sentence with the rarest shared term."""
        shared = [term for term in self._said[at].terms if self.last[term] > at]
        rare = [term for term in shared if self._times[term] <= _COMMON or has_digit(term)]
        if not rare:
            return []
        return [self.last[min(rare, key=lambda term: (self._times[term], not has_digit(term), -len(term)))]]
