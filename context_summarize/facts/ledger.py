"""The ledger: exact values that accompany the prose of a summary."""

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
"""Shares of a ledger's tokens: for codes, amounts and paths; for these and all other identifiers."""
SAID = 0.6
"""Share of a ledger's tokens for values that the merged summaries said and the new summary dropped."""

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
    """Tokens that the model is asked for: three quarters of a summary. Code adds the ledger."""
    return summary_tokens * 3 // 4


def ledger_tokens(summary_tokens: int, level: int) -> int:
    """Tokens of the ledger: as many as the prose for a segment; a third of that for a merge, whose prose is longer."""
    return summary_tokens * 3 // 4 if level == 0 else summary_tokens // 4


def build_ledger(facts: Sequence[Fact], text: str, max_tokens: int, count: Count) -> tuple[Fact, ...]:
    """The facts that `text` does not hold, as many as fit into `max_tokens` when formatted, in the order of `facts`.

    They are chosen in this order:
    1. facts that earlier prose held, in up to `SAID` of the tokens;
    2. codes (short ids such as a reservation or flight number), amounts and paths, in up to `PRIME` of the tokens,
       because prose loses them most often;
    3. the other identifiers, in up to `EXACT` of the tokens;
    4. user words, commands and errors;
    5. the remaining identifiers.

    Within each class the kinds take turns, and each gives its best next fact. A fact that does not fit is skipped, so
    one long text does not keep shorter ones out. A single user word without a digit ("yes") is left out, because it
    says nothing alone.
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
    """The ledger as it is shown: one line for each kind; "" if it is empty.

    A space separates identifiers, because it costs the fewest tokens; a comma does if one of them contains a space.
    """
    lines = []
    for kind, label in _LABELS.items():
        if values := [_shown(fact) for fact in ledger if fact.kind == kind]:
            mark = " | " if kind in WORDS else ", " if any(" " in value for value in values) else " "
            lines.append(f"{label}: {mark.join(values)}")
    return "\n".join([LEDGER_LINE, *lines]) if lines else ""


def merge_facts(children: Sequence[Sequence[Fact]]) -> tuple[Fact, ...]:
    """The ledgers of neighbours, oldest first, as one ledger: counts added, newest and most repeated first.

    The score is the one of `extract_facts`; a fact's place is its rank in the newest child that has it.
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
    """False for a single user word. A text with non-ASCII characters counts as more: its script may have no spaces."""
    words = one_line(fact.value)
    return fact.kind != "user" or " " in words or not words.isascii() or any(map(str.isdigit, words))


def _in_turns(facts: Sequence[Fact], kinds: Sequence[FactKind], most: int) -> list[Fact]:
    """The best `most` facts; the kinds take turns. Every fact costs at least one token, so more are not needed."""
    columns = [[fact for fact in facts if fact.kind == kind] for kind in kinds]
    return [fact for turn in zip_longest(*columns) for fact in turn if fact is not None][: max(most, 0)]
