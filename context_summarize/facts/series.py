"""Series: many values under one name, and sentences that differ in their figures alone. Each of them says little."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from context_summarize.facts.fact import Fact
from context_summarize.facts.ledger_lines import line_of

_FEW = 8
"""Facts of one name that are no series yet."""
_DIGITS = re.compile(r"\d+")


def in_series(facts: Sequence[Fact]) -> frozenset[Fact]:
    """The facts that belong to a series."""
    names = [_name_of(fact) for fact in facts]
    members = Counter(names)
    return frozenset(fact for fact, name in zip(facts, names, strict=True) if members[name] > _FEW)


def _name_of(fact: Fact) -> tuple[str, str]:
    return (_DIGITS.sub("0", fact.value), "") if fact.kind == "note" else line_of(fact)
