"""The lines of a ledger: a line for each row or note with its values, and one for each kind of bare values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.patterns import one_line
from context_summarize.facts.remarks import is_remark

LEDGER_LINE = "Exact values not to be paraphrased:"

WORDS: tuple[FactKind, ...] = ("user", "command", "error")

_LABELS: dict[FactKind, str] = {
    "id": "ids",
    "amount": "amounts",
    "path": "paths",
    "url": "urls",
    "user": "user said",
    "command": "commands",
    "error": "errors",
}


def line_of(fact: Fact) -> tuple[str, str]:
    """The line on which a fact stands, and the label before it."""
    if fact.kind == "note":
        return item_of(fact), ""
    if not fact.about:
        return _LABELS[fact.kind], ""
    if (noun := noun_of(fact)) and not fact.label:
        return noun, ""
    return fact.about, "" if _speaks(fact) else fact.label


def noun_of(fact: Fact) -> str:
    """What a fact is where its line holds nothing else: `flight` of `flight HAT102`; "" for a longer line."""
    noun = fact.about[: -len(fact.value)].strip(" :").lower()
    plain = fact.about.endswith(f" {fact.value}") and noun.replace(" ", "").isalpha()
    return noun if plain and noun.count(" ") <= 2 else ""


def item_of(fact: Fact) -> str:
    """A value as it is shown."""
    value = f'"{one_line(fact.value)}"' if fact.kind == "user" or is_remark(fact) else one_line(fact.value)
    return f"{value} (was {one_line(fact.was)})" if fact.was else value


def _speaks(fact: Fact) -> bool:
    """True for a value that says itself what its key says: `credit_card_123`, a date, `$250`."""
    value, label = fact.value, fact.label.replace(" ", "_")
    return value[:1] in "$€£¥" or (value[:4].isdigit() and value[4:5] == "-") or value.startswith(label)


def format_ledger(ledger: Sequence[Fact]) -> str:
    """The ledger as it is shown: a line for each row or note, the oldest first, then one for each kind; "" if empty.

    A space separates bare identifiers, because it costs the fewest tokens; a comma does if one contains a space.
    """
    rows: dict[str, dict[str, list[str]]] = {}
    holding: dict[str, Fact] = {}
    """Identities and sentences that hold a value: they are shown even if nothing else belongs to them."""
    notes: list[Fact] = []
    for fact in reversed(ledger):
        if fact.kind == "note":
            notes.append(fact)
        elif fact.about and fact.label:
            rows.setdefault(fact.about, {}).setdefault(line_of(fact)[1], []).append(item_of(fact))
        elif fact.about:
            holding[fact.about] = fact
    alone: dict[str, list[str]] = {}
    for about, fact in holding.items():
        if about not in rows:
            if noun := noun_of(fact):
                alone.setdefault(noun, []).append(item_of(fact))
            else:
                rows[about] = {}
    lines = [one_line(item_of(note)) for note in notes]
    lines += [_row_line(about, labels) for about, labels in rows.items()]
    lines += [f"{noun} {' '.join(values)}" for noun, values in alone.items()]
    for kind, label in _LABELS.items():
        if values := [item_of(fact) for fact in ledger if fact.kind == kind and not fact.about]:
            mark = " | " if kind in WORDS else ", " if any(" " in value for value in values) else " "
            lines.append(f"{label}: {mark.join(values)}")
    return "\n".join([LEDGER_LINE, *lines]) if lines else ""


def _row_line(about: str, labels: Mapping[str, Sequence[str]]) -> str:
    told = ", ".join(" ".join([label, *values] if label else values) for label, values in labels.items())
    return f"{about}: {told}" if told else about
