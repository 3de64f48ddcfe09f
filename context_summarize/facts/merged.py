"""Ledgers of neighbouring summaries as one, by value and by thing: a later value takes an earlier one's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from context_summarize.facts.fact import Fact
from context_summarize.facts.tally import Key, Slots, earlier_value, place_of, score


def merge_facts(children: Sequence[Sequence[Fact]]) -> tuple[Fact, ...]:
    """The ledgers of neighbours, oldest first, as one ledger: counts added, newest and most repeated first.

    The score is the one of `extract_facts`; a fact's place is its rank in the newest child that has it. What the newest
    child knows of a value stands; where a place holds one value at a time, the newest names the one before it.
    """
    facts: dict[Key, Fact] = {}
    places: dict[Key, float] = {}
    slots = Slots()
    for index, child in enumerate(children):
        new: set[Key] = set()
        for rank, fact in enumerate(child):
            key = fact.kind, fact.value
            new.add(key)
            facts[key] = _joined(facts[key], fact) if key in facts else fact
            places[key] = (index + 1 - rank / len(child)) / len(children)
            if place := place_of(fact.kind, fact.value, fact.about, fact.label):
                slots.put(place, key)
        for before, after in slots.replaced():
            if before in facts and before not in new and _same_place(facts[before], facts[after]):
                del facts[before]
                facts[after] = replace(facts[after], was=earlier_value(before, after))
    order = sorted(facts, key=lambda key: (-score(places[key], facts[key].count), -places[key], key))
    return tuple(facts[key] for key in order)


def _joined(old: Fact, new: Fact) -> Fact:
    """One value in two children: counts added, what the newer one knows of it first."""
    newer = new if new.label or (new.about and not old.label) else old
    return replace(
        new,
        count=old.count + new.count,
        said=old.said or new.said,
        told=old.told or new.told,
        about=newer.about,
        label=newer.label,
        was=new.was or old.was,
    )


def _same_place(old: Fact, new: Fact) -> bool:
    return (old.about, old.label) == (new.about, new.label)
