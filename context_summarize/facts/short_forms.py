"""Short forms: values of JSON behind a noun alone, where a ledger has no room for all of them with their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from context_summarize.background import Steps
from context_summarize.facts.fact import Fact

Forms: TypeAlias = dict[Fact, Fact]
"""Fact → the form in which it is shown."""


def short_form(fact: Fact, noun: str) -> Fact:
    """The fact behind its label or noun alone: `flight HAT136` of `reservation 4WQ150: flight HAT136`; else bare."""
    noun = fact.label.replace("_", " ") or noun
    plain = noun.replace(" ", "").isalpha() and noun.count(" ") <= 2
    return replace(fact, about=f"{noun} {fact.value}" if plain else "", label="")


def fewest_given_up(
    ledger_after: Callable[[int], Steps[Forms]], most: int, fits: Callable[[Forms], bool]
) -> Steps[Forms]:
    """The ledger that fits after the fewest groups are given up, 0…`most`; the one after `most` if none does.

    `ledger_after(n)` is the ledger after the first n groups; more groups are taken to leave more room.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        forms = yield from ledger_after(middle)
        if fits(forms):
            high = middle
        else:
            low = middle + 1
        yield
    return (yield from ledger_after(low))
