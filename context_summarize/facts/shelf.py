"""`Shelf`: the facts that have been chosen for a ledger, and the room that they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from context_summarize.background import Steps, fewest
from context_summarize.facts.extraction import IDENTIFIERS
from context_summarize.facts.fact import Fact
from context_summarize.facts.ledger_lines import LEDGER_LINE, WORDS, format_ledger, item_of, line_of
from context_summarize.facts.pairs import is_pair
from context_summarize.facts.patterns import is_date
from context_summarize.tokens.measure import Count

NOTED, WHOLE = 0.1, 0.4
"""Shares that notes and rows keep where values of JSON do not all fit with their words."""
A_STEP = 32
"""Facts that are weighed or looked for in one step."""


class Shelf:
    """What has been chosen, and the room that it takes."""

    def __init__(self, room: int, count: Count) -> None:
        self.chosen: dict[Fact, None] = {}
        self._room, self._count = room, cache(count)  # most facts are offered again and again
        self._spent = 0
        self._opened: set[tuple[str, str]] = set()
        """Beginnings of lines, and labels within them, that are paid for."""

    def fill(self, facts: Sequence[Fact], share: float) -> Steps[None]:
        """Take the facts that fit within this share of the room, those of one row one after the other."""
        bound = int(self._room * share)
        for at, fact in enumerate(_together(facts), start=1):
            if at % A_STEP == 0:
                yield
            if self._spent >= bound:
                return
            if fact in self.chosen:
                continue
            price = self._price(fact)
            if self._spent + price <= bound:
                self.chosen[fact] = None
                self._opened |= {(fact.about, ""), line_of(fact)}
                self._spent += price

    def fits(self, facts: Iterable[Fact]) -> bool:
        """True if these facts fit into the room when they are shown."""
        return self._weight_of([*facts]) <= self._room

    def _weight_of(self, facts: Sequence[Fact]) -> int:
        """Tokens that these facts take when they are shown, the first line aside."""
        return self._count(format_ledger(facts)) - self._count(LEDGER_LINE)

    def groups_to_give_up(self) -> Steps[list[list[Fact]]]:
        """What has been chosen and may be given up, the least important first; see `_with_every_value`."""
        facts = [*self.chosen]
        words = [[fact] for fact in facts if fact.kind in WORDS]
        dates = [[fact] for fact in facts if fact.kind in IDENTIFIERS and is_date(fact.value)]
        notes = [[fact] for fact in facts if fact.kind == "note"]
        rows: dict[str, list[Fact]] = {}
        for fact in facts:
            if fact.kind in IDENTIFIERS and fact.about and not is_date(fact.value):
                rows.setdefault(fact.about, []).append(fact)
        beyond = yield from self._beyond(notes, NOTED)
        rows_beyond = yield from self._beyond([*rows.values()], WHOLE)
        return [*words[::-1], *dates[::-1], *beyond, *rows_beyond]

    def _beyond(self, groups: Sequence[list[Fact]], share: float) -> Steps[list[list[Fact]]]:
        """The groups behind those that take this share of the room together, the last one first."""

        def is_full(kept: int) -> Steps[bool]:  # one group more takes too much: each adds a line
            yield
            return self._weight_of([fact for group in groups[: kept + 1] for fact in group]) > self._room * share

        kept = yield from fewest(len(groups), is_full)
        return list(groups[kept:][::-1])

    def weigh(self) -> None:
        """What has been chosen weighs what it takes when it is shown."""
        self._spent = self._weight_of([*self.chosen]) if self.chosen else 0

    def _price(self, fact: Fact) -> int:
        if is_pair(fact):
            return 0 if (fact.about, "") in self._opened else self._count(f"\n{fact.about}")
        line, label = line_of(fact)
        opens = "" if (line, "") in self._opened else f"\n{line}:"
        key = f", {label}" if label and (line, label) not in self._opened else ""
        return self._count(f"{opens}{key} {item_of(fact)}" if fact.kind != "note" else f"\n{item_of(fact)}")


def _together(facts: Sequence[Fact]) -> list[Fact]:
    """The facts, those of one row behind the first of them."""
    rows: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        rows.setdefault((fact.about, "") if fact.about else (fact.kind, fact.value), []).append(fact)
    return [fact for row in rows.values() for fact in row]
