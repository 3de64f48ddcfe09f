"""Short forms: values of JSON behind a noun alone, where a ledger has no room for all of them with their words."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from context_summarize.facts.fact import Fact

Forms: TypeAlias = dict[Fact, Fact]
"""Fact → the form in which it is shown."""


def short_form(fact: Fact, noun: str) -> Fact:
    """The fact behind its label or noun alone: `flight HAT136` of `reservation 4WQ150: flight HAT136`; else bare."""
    noun = fact.label.replace("_", " ") or noun
    plain = noun.replace(" ", "").isalpha() and noun.count(" ") <= 2
    return replace(fact, about=f"{noun} {fact.value}" if plain else "", label="")
