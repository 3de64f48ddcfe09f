"""The ledger: exact values that accompany the prose of a summary, each with what it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from context_summarize.facts.extraction import IDENTIFIERS
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.patterns import is_code, is_date, one_line
from context_summarize.facts.prose import Prose
from context_summarize.facts.short_forms import Forms, fewest_given_up, short_form
from context_summarize.tokens.measure import Count

LEDGER_LINE = "Exact values not to be paraphrased:"

WORDS: tuple[FactKind, ...] = ("user", "command", "error")
SAID, TOLD, PRIME, EXACT, NOTES = 0.15, 0.3, 0.85, 0.92, 0.97
"""Shares of a ledger's tokens, each with those before it: values that the merged summaries said and the new one
dropped; notes of what the user said; codes, amounts and paths with a key; other identifiers with a key; more notes."""
BARE = 0.65
"""The same for identifiers without a key."""
NOTED, WHOLE = 0.1, 0.4
"""Shares that notes and rows keep where values of JSON do not all fit with their words."""
_PROSE = 0.75, 0.35, 0.45
"""Share of `summary_tokens` that is prose, at level 0, 1 and above."""

_LABELS: dict[FactKind, str] = {
    "id": "ids",
    "amount": "amounts",
    "path": "paths",
    "url": "urls",
    "user": "user said",
    "command": "commands",
    "error": "errors",
}


def prose_tokens(summary_tokens: int, level: int) -> int:
    """Tokens that the model is asked for; code adds the ledger."""
    return int(summary_tokens * _PROSE[min(level, 2)])


def ledger_tokens(summary_tokens: int, level: int) -> int:
    """Tokens of the ledger: as many as the prose for a segment; for a merge what its prose leaves of the summary."""
    return summary_tokens * 3 // 4 if level == 0 else summary_tokens - prose_tokens(summary_tokens, level)


def build_ledger(facts: Sequence[Fact], text: str, max_tokens: int, count: Count) -> tuple[Fact, ...]:
    """The facts that `text` does not tell, as many as fit into `max_tokens` when formatted, in the order of `facts`.

    A text tells a value if it holds it near the words that say what it is. Facts are chosen in this order:
    1. facts that earlier prose held, in up to `SAID` of the tokens;
    2. notes of what the user said, in up to `TOLD`;
    3. codes (short ids such as a reservation or flight number), amounts and paths whose key is known, in up to `PRIME`,
       because prose loses them most often; then other identifiers with a key, without dates, in up to `EXACT`;
    4. the other notes of what the user said, in up to `NOTES`; identifiers without a key, in up to `BARE`;
    5. other notes, user words, commands and errors;
    6. what remains; last what the prose holds without its words;
    7. where values of JSON are still missing, short forms take the place of the last: see `_with_every_value`.

    Within each class the kinds take turns, and each gives its best next fact, with the others that belong to the same
    row. A fact that does not fit is skipped, so one long text does not keep shorter ones out. A single user word
    without a digit ("yes") is left out, because it says nothing alone.
    """
    prose = Prose(text)
    fresh = [fact for fact in facts if _tells(fact) and not prose.tells(fact)]
    bare = {fact for fact in fresh if fact.kind != "note" and prose.holds(one_line(fact.value))}
    first = [fact for fact in fresh if fact not in bare]
    shelf = _Shelf(max_tokens - count(LEDGER_LINE), count)
    _fill_in_order(shelf, first, max_tokens)
    for _ in range(2):  # shown together, facts take less than one by one
        shelf.weigh()
        shown = Prose(format_ledger([*shelf.chosen]))
        rest = [fact for fact in fresh if fact.kind in IDENTIFIERS and not shown.holds(one_line(fact.value))]
        shelf.fill([fact for fact in rest if fact not in bare], 1)
        shelf.fill([fact for fact in rest if fact in bare], 1)
    forms = _with_every_value(shelf, [fact for fact in first if fact.kind in IDENTIFIERS and not is_date(fact.value)])
    while forms and count(format_ledger([*forms.values()])) > max_tokens:
        forms.popitem()
    return tuple(forms[fact] for fact in fresh if fact in forms)


def _with_every_value(shelf: _Shelf, exact: Sequence[Fact]) -> Forms:
    """What has been chosen, each fact in the form in which it is shown; with short forms of `exact` if they do not fit.

    Nothing changes without values of JSON, or if no code, amount or path is missing. Else facts are given up until all
    values of `exact` fit: user words, commands and errors, dates, notes beyond `NOTED`, then the rows chosen last,
    whose values return in short form. Rows in up to `WHOLE` of the tokens stay. What does not fit even so is left out.
    """
    wanted = sorted(exact, key=lambda fact: (not _is_prime(fact), not _is_keyed(fact)))
    shown = Prose(format_ledger([*shelf.chosen]))
    from_json = any(fact.label for fact in wanted)
    if not from_json or all(shown.holds(one_line(fact.value)) for fact in wanted if _is_prime(fact)):
        return {fact: fact for fact in shelf.chosen}
    groups = shelf.groups_to_give_up()

    def ledger_after(given_up: int) -> Forms:
        gone = {fact for group in groups[:given_up] for fact in group}
        forms = {fact: fact for fact in shelf.chosen if fact not in gone}
        places = {_place_of(fact) for fact in forms}
        shown = Prose(format_ledger([*forms]))
        for fact in wanted:
            if fact not in forms and not shown.holds(one_line(fact.value)):
                forms[fact] = fact if _place_of(fact) in places else short_form(fact, noun=_noun_of(fact))
        return forms

    return fewest_given_up(ledger_after, len(groups), lambda forms: shelf.fits(forms.values()))


def _fill_in_order(shelf: _Shelf, facts: Sequence[Fact], most: int) -> None:
    """Classes 1 to 5 of `build_ledger`."""
    told = [fact for fact in facts if fact.told]
    keyed = [fact for fact in facts if _is_keyed(fact)]
    shelf.fill([fact for fact in facts if fact.said], SAID)
    shelf.fill(told, TOLD)
    shelf.fill(_in_turns([fact for fact in keyed if _is_prime(fact)], IDENTIFIERS, most), PRIME)
    exact = [fact for fact in keyed if not _is_prime(fact) and not is_date(fact.value)]
    shelf.fill(_in_turns(exact, IDENTIFIERS, most), EXACT)
    shelf.fill(told, NOTES)
    notes = Prose("\n".join(fact.value for fact in shelf.chosen if fact.kind == "note"))
    others = [fact for fact in facts if fact.kind not in IDENTIFIERS or not notes.holds(one_line(fact.value))]
    shelf.fill(_in_turns([fact for fact in others if _is_prime(fact)], IDENTIFIERS, most), BARE)
    shelf.fill(_in_turns([fact for fact in others if not _is_prime(fact)], IDENTIFIERS, most), BARE)
    shelf.fill(_in_turns(others, ("note", *WORDS), most), 1)


class _Shelf:
    """What has been chosen, and the room that it takes."""

    def __init__(self, room: int, count: Count) -> None:
        self.chosen: dict[Fact, None] = {}
        self._room, self._count = room, count
        self._spent = 0
        self._opened: set[tuple[str, str]] = set()
        """Beginnings of lines, and labels within them, that are paid for."""

    def fill(self, facts: Sequence[Fact], share: float) -> None:
        """Take the facts that fit within this share of the room, those of one row one after the other."""
        bound = int(self._room * share)
        for fact in _together(facts):
            if self._spent >= bound:
                return
            if fact in self.chosen:
                continue
            price = self._price(fact)
            if self._spent + price <= bound:
                self.chosen[fact] = None
                self._opened |= {(fact.about, ""), _place_of(fact)}
                self._spent += price

    def fits(self, facts: Iterable[Fact]) -> bool:
        """True if these facts fit into the room when they are shown."""
        return self._weight_of([*facts]) <= self._room

    def _weight_of(self, facts: Sequence[Fact]) -> int:
        """Tokens that these facts take when they are shown, the first line aside."""
        return self._count(format_ledger(facts)) - self._count(LEDGER_LINE)

    def groups_to_give_up(self) -> list[list[Fact]]:
        """What has been chosen and may be given up, the least important first; see `_with_every_value`."""
        facts = [*self.chosen]
        words = [[fact] for fact in facts if fact.kind in WORDS]
        dates = [[fact] for fact in facts if fact.kind in IDENTIFIERS and is_date(fact.value)]
        notes = [[fact] for fact in facts if fact.kind == "note"]
        rows: dict[str, list[Fact]] = {}
        for fact in facts:
            if fact.kind in IDENTIFIERS and fact.about and not is_date(fact.value):
                rows.setdefault(fact.about, []).append(fact)
        beyond = self._beyond(notes, NOTED)
        return [*words[::-1], *dates[::-1], *beyond, *self._beyond([*rows.values()], WHOLE)]

    def _beyond(self, groups: Sequence[list[Fact]], share: float) -> list[list[Fact]]:
        """The groups behind those that take this share of the room together, the last one first."""
        kept = 0
        while kept < len(groups):
            together = [fact for group in groups[: kept + 1] for fact in group]
            if self._weight_of(together) > self._room * share:
                break
            kept += 1
        return list(groups[kept:][::-1])

    def weigh(self) -> None:
        """What has been chosen weighs what it takes when it is shown."""
        self._spent = self._weight_of([*self.chosen]) if self.chosen else 0

    def _price(self, fact: Fact) -> int:
        line, label = _place_of(fact)
        opens = "" if (line, "") in self._opened else f"\n{line}:"
        key = f", {label}" if label and (line, label) not in self._opened else ""
        return self._count(f"{opens}{key} {_item(fact)}" if fact.kind != "note" else f"\n{_item(fact)}")


def _place_of(fact: Fact) -> tuple[str, str]:
    """The line on which a fact stands, and the label before it."""
    if fact.kind == "note":
        return _item(fact), ""
    if not fact.about:
        return _LABELS[fact.kind], ""
    if (noun := _noun_of(fact)) and not fact.label:
        return noun, ""
    return fact.about, "" if _speaks(fact) else fact.label


def _noun_of(fact: Fact) -> str:
    """What a fact is where its line holds nothing else: `flight` of `flight HAT102`; "" for a longer line."""
    noun = fact.about[: -len(fact.value)].strip(" :").lower()
    plain = fact.about.endswith(f" {fact.value}") and noun.replace(" ", "").isalpha()
    return noun if plain and noun.count(" ") <= 2 else ""


def _item(fact: Fact) -> str:
    """A value as it is shown."""
    value = f'"{one_line(fact.value)}"' if fact.kind == "user" else one_line(fact.value)
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
            rows.setdefault(fact.about, {}).setdefault(_place_of(fact)[1], []).append(_item(fact))
        elif fact.about:
            holding[fact.about] = fact
    alone: dict[str, list[str]] = {}
    for about, fact in holding.items():
        if about not in rows:
            if noun := _noun_of(fact):
                alone.setdefault(noun, []).append(_item(fact))
            else:
                rows[about] = {}
    lines = [one_line(_item(note)) for note in notes]
    lines += [_row_line(about, labels) for about, labels in rows.items()]
    lines += [f"{noun} {' '.join(values)}" for noun, values in alone.items()]
    for kind, label in _LABELS.items():
        if values := [_item(fact) for fact in ledger if fact.kind == kind and not fact.about]:
            mark = " | " if kind in WORDS else ", " if any(" " in value for value in values) else " "
            lines.append(f"{label}: {mark.join(values)}")
    return "\n".join([LEDGER_LINE, *lines]) if lines else ""


def _row_line(about: str, labels: Mapping[str, Sequence[str]]) -> str:
    told = ", ".join(" ".join([label, *values] if label else values) for label, values in labels.items())
    return f"{about}: {told}" if told else about


def _is_keyed(fact: Fact) -> bool:
    """True for an identifier whose key is known, or that stands behind its noun: it costs few tokens."""
    return fact.kind in IDENTIFIERS and bool(fact.label or _noun_of(fact))


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


def _together(facts: Sequence[Fact]) -> list[Fact]:
    """The facts, those of one row behind the first of them."""
    rows: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        rows.setdefault((fact.about, "") if fact.about else (fact.kind, fact.value), []).append(fact)
    return [fact for row in rows.values() for fact in row]
