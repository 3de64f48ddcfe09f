"""The ledger: exact values that stand beside the prose of a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from context_summarize.facts.extraction import IDENTIFIERS, score
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.patterns import holds, is_code, one_line
from context_summarize.tokens.measure import Count

LEDGER_LINE = "Exact values not to be paraphrased:"

WORDS: tuple[FactKind, ...] = ("user", "command", "error")
PRIME, EXACT = 0.8, 0.65
"""Shares of a ledger's room: codes, amounts and paths; these and all other identifiers."""
SAID = 0.6
"""Share of a ledger's room for what the summaries below have said and the one above them has dropped."""

_LABELS: dict[FactKind, str] = {
    "id": "ids",
    "amount": "amounts",
    "path": "paths",
    "url": "urls",
    "user": "user said",
    "command": "commands",
    "error": "errors",
}


def prose_tokens(summary_tokens: int) -> int:
    """What the model is asked for: three quarters of a summary; code writes the other part, exactly."""
    return summary_tokens * 3 // 4


def ledger_tokens(summary_tokens: int, level: int) -> int:
    """Room of the ledger beside it: as much again for a segment; a third of that for a merge, whose prose is longer."""
    return summary_tokens * 3 // 4 if level == 0 else summary_tokens // 4


def build_ledger(facts: Sequence[Fact], text: str, max_tokens: int, count: Count) -> tuple[Fact, ...]:
    """The facts that `text` does not hold, as many as fit into `max_tokens` once formatted, in the order of `facts`.

    What prose has held before comes first, in up to `SAID` of the room; then codes (short ids such as a reservation's
    or a flight's number), amounts and paths, in up to `PRIME` of it: prose loses them most often. Then the other
    identifiers up to `EXACT` of the room, then user words, commands and errors, then what is left of the identifiers.
    Within each class the kinds take turns, each giving its best next fact. A fact that does not fit is passed over, so
    that one long text does not keep shorter ones out. A user's single word without a digit ("yes") is left out: alone
    it says nothing.
    """
    flat = one_line(text)
    fresh = [fact for fact in facts if _tells(fact) and not holds(flat, one_line(fact.value))]
    said = [fact for fact in fresh if fact.said]
    prime = _in_turns([fact for fact in fresh if _is_prime(fact)], IDENTIFIERS, max_tokens)
    exact = _in_turns([fact for fact in fresh if not _is_prime(fact)], IDENTIFIERS, max_tokens)
    words = _in_turns(fresh, WORDS, max_tokens)
    room = max_tokens - count(LEDGER_LINE)
    chosen: dict[Fact, None] = {}
    kinds: set[FactKind] = set()
    spent = 0
    for candidates, bound in (
        (said, int(room * SAID)),
        (prime, int(room * PRIME)),
        (exact, int(room * EXACT)),
        (words, room),
        (prime, room),
        (exact, room),
    ):
        for fact in candidates:
            label = "" if fact.kind in kinds else f"\n{_LABELS[fact.kind]}:"
            price = count(f"{label} {_shown(fact)}") + (2 if fact.kind in WORDS else 0)
            if fact not in chosen and spent + price <= bound:
                chosen[fact] = None
                kinds.add(fact.kind)
                spent += price
    while chosen and count(format_ledger([*chosen])) > max_tokens:
        chosen.popitem()
    return tuple(fact for fact in fresh if fact in chosen)


def format_ledger(ledger: Sequence[Fact]) -> str:
    """The ledger as it is shown: one line a kind, each value on one line; "" when it is empty.

    Identifiers stand apart by blanks alone, the cheapest mark in tokens, unless one of the line holds a blank itself.
    """
    lines = []
    for kind, label in _LABELS.items():
        if values := [_shown(fact) for fact in ledger if fact.kind == kind]:
            mark = " | " if kind in WORDS else ", " if any(" " in value for value in values) else " "
            lines.append(f"{label}: {mark.join(values)}")
    return "\n".join([LEDGER_LINE, *lines]) if lines else ""


def merge_facts(children: Sequence[Sequence[Fact]]) -> tuple[Fact, ...]:
    """The ledgers of neighbours, oldest first, as one: counts added, newest and most repeated first.

    The score is that of `extract_facts`, the place of a fact being its rank in the newest child that has it.
    """
    counts: Counter[tuple[FactKind, str]] = Counter()
    said = {(fact.kind, fact.value) for child in children for fact in child if fact.said}
    places: dict[tuple[FactKind, str], float] = {}
    for index, child in enumerate(children):
        for rank, fact in enumerate(child):
            counts[fact.kind, fact.value] += fact.count
            places[fact.kind, fact.value] = (index + 1 - rank / len(child)) / len(children)
    order = sorted(places, key=lambda key: (-score(places[key], counts[key]), -places[key], key))
    return tuple(Fact(kind, value, counts[kind, value], (kind, value) in said) for kind, value in order)


def _shown(fact: Fact) -> str:
    return f'"{one_line(fact.value)}"' if fact.kind == "user" else one_line(fact.value)


def _is_prime(fact: Fact) -> bool:
    return fact.kind in ("amount", "path") or (fact.kind == "id" and is_code(fact.value))


def _tells(fact: Fact) -> bool:
    """False for a user's lone word; scripts beyond ASCII may do without blanks."""
    words = one_line(fact.value)
    return fact.kind != "user" or " " in words or not words.isascii() or any(map(str.isdigit, words))


def _in_turns(facts: Sequence[Fact], kinds: Sequence[FactKind], most: int) -> list[Fact]:
    """The best `most` facts, the kinds taking turns; no fact is cheaper than a token, so more are not needed."""
    columns = [[fact for fact in facts if fact.kind == kind] for kind in kinds]
    return [fact for turn in zip_longest(*columns) for fact in turn if fact is not None][: max(most, 0)]
