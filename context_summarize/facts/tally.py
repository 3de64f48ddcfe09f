"""Counts the facts of a transcript, with the last place of each and what replaced what."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import NamedTuple

from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.notes import figure_of, subject_of

Key = tuple[FactKind, str]


def score(place: float, count: int) -> float:
    """The worth of a fact by its place (0 oldest … 1 newest) and how often it occurs; see `extract_facts`."""
    return place + min(log2(max(count, 1)), 4.0) / 8


class What(NamedTuple):
    """What one occurrence of a value is; see `Fact`."""

    about: str = ""
    label: str = ""
    keyed: bool = False
    """True if keys of a JSON text say it, which words of a sentence do not replace."""
    told: bool = False


_UNKNOWN = What()


@dataclass(slots=True)
class _Seen:
    count: int = 0
    row: int = 0
    order: int = 0
    what: What = _UNKNOWN
    was: str = ""
    told: bool = False


class Slots:
    """What stood last in each place that holds one value at a time: a key of a row, or the subject of a note.

    A place that holds several values within one row is a list: there nothing replaces anything.
    """

    def __init__(self) -> None:
        self._now: dict[tuple[str, ...], set[Key]] = {}
        self._last: dict[tuple[str, ...], Key | None] = {}

    def put(self, place: tuple[str, ...], key: Key) -> None:
        """Note a value of the row that is read."""
        self._now.setdefault(place, set()).add(key)

    def replaced(self) -> list[tuple[Key, Key]]:
        """(earlier, later) of the row that ends."""
        found: list[tuple[Key, Key]] = []
        for place, keys in self._now.items():
            before = self._last.get(place, ...)
            only = next(iter(keys)) if len(keys) == 1 else None
            if before is ...:
                self._last[place] = only
            elif before is None or only is None:
                self._last[place] = None
            elif before != only:
                found.append((before, only))
                self._last[place] = only
        self._now.clear()
        return found


class Tally:
    """Counts facts, and records the last place of each."""

    def __init__(self) -> None:
        self.seen: dict[Key, _Seen] = {}
        self._order = 0
        self._slots = Slots()

    def add(self, kind: FactKind, value: str, row: int, times: int = 1, what: What = _UNKNOWN) -> None:
        """Counts one value of row number `row`; what is known of it stays where a later row does not tell."""
        self._order += 1
        seen = self.seen.setdefault((kind, value), _Seen())
        seen.count += times
        seen.row, seen.order, seen.told = row, self._order, seen.told or what.told
        if (what.about and (what.keyed or not seen.what.keyed)) or (what.keyed and not seen.what.about):
            seen.what = what
        if place := place_of(kind, value, what.about, what.label):
            self._slots.put(place, (kind, value))

    def end_row(self, row: int) -> None:
        """Take the earlier values of what this row has said anew."""
        for before, after in self._slots.replaced():
            old = self.seen.get(before)
            if old is not None and old.row < row and old.what == self.seen[after].what:
                self.seen[after].was = earlier_value(before, after)
                del self.seen[before]

    def join_bare_amounts(self) -> None:
        """Counts the bare `1250` of a JSON value as the written amount `$1,250`, if both occur."""
        amounts = [value for kind, value in self.seen if kind == "amount"]
        written = {value[1:].strip().replace(",", ""): value for value in amounts if value[0] in "$€£¥"}
        for value in amounts:
            if value in written:
                bare, known = self.seen.pop(("amount", value)), self.seen["amount", written[value]]
                known.count += bare.count
                known.row, known.order = max((known.row, known.order), (bare.row, bare.order))
                if bare.what.keyed:
                    known.what, known.was = bare.what, bare.was

    def ranked(self, rows: int) -> tuple[Fact, ...]:
        """The facts in the ledger's order, see `extract_facts`."""
        found = [(score((seen.row + 1) / rows, seen.count), seen.order, key) for key, seen in self.seen.items()]
        found.sort(key=lambda item: (-item[0], -item[1]))
        return tuple(_fact(key, self.seen[key]) for _, _, key in found)


def place_of(kind: FactKind, value: str, about: str, label: str) -> tuple[str, ...]:
    """The place that a fact is the value of; () for one that has none."""
    if kind == "note":
        subject = subject_of(value)
        return ("note", *subject) if subject else ()
    return (kind, about, label) if about and label else ()


def earlier_value(before: Key, after: Key) -> str:
    """What the earlier value is called beside the later one; "" if both are the same figure in other words."""
    if before[0] != "note":
        return before[1]
    was = figure_of(before[1])
    return "" if was == figure_of(after[1]) else was


def _fact(key: Key, seen: _Seen) -> Fact:
    return Fact(*key, seen.count, about=seen.what.about, label=seen.what.label, was=seen.was, told=seen.told)
