"""The ledger: exact values that accompany the prose of a summary, each with what it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from context_summarize.background import Steps, fewest, finished
from context_summarize.facts.extraction import IDENTIFIERS
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.ledger_lines import LEDGER_LINE, WORDS, format_ledger, item_of, line_of, noun_of
from context_summarize.facts.notes import FIGURE
from context_summarize.facts.pairs import is_pair
from context_summarize.facts.patterns import is_code, is_date, one_line
from context_summarize.facts.prose import Prose
from context_summarize.facts.remarks import is_remark, remarks_of
from context_summarize.facts.series import in_series
from context_summarize.facts.shelf import A_STEP, Shelf
from context_summarize.facts.short_forms import Forms, short_form
from context_summarize.tokens.measure import Count

SAID, TOLD, PRIME, EXACT, NOTES = 0.15, 0.3, 0.85, 0.92, 0.97
"""Shares of a ledger's tokens, each with those before it: values that the merged summaries said and the new one
dropped; notes of what the user said; codes, amounts and paths with a key; other identifiers with a key; more notes."""
BARE = 0.65
"""The same for identifiers without a key."""
_PROSE = 0.75, 0.35, 0.45
"""Share of `summary_tokens` that is prose, at level 0, 1 and above."""
_CLEARLY = 1.25
"""A ledger that is so many times too large fits with none more of its values either."""


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
       because prose loses them most often; then other identifiers with a key, without dates, in up to `EXACT`; in
       both, what belongs to a series comes last, and its notes wait for class 5;
    4. the other notes of what the user said, in up to `NOTES`; identifiers without a key, in up to `BARE`;
    5. other notes, user words with a figure, commands and errors;
    6. what remains of the identifiers, last what the prose holds without its words;
    7. remarks, which say most for their length; other user words;
    8. where values of JSON are still missing, short forms take the place of the last: see `_with_every_value`.

    Within each class the kinds take turns, and each gives its best next fact, with the others that belong to the same
    row. A fact that does not fit is skipped, so one long text does not keep shorter ones out. A single user word
    without a digit ("yes") is left out, because it says nothing alone.
    """
    return finished(ledger_steps(facts, text, max_tokens, count))


def ledger_steps(facts: Sequence[Fact], text: str, max_tokens: int, count: Count) -> Steps[tuple[Fact, ...]]:
    """The same as `build_ledger`, a few dozen facts a step."""
    prose = Prose(text)
    fresh: list[Fact] = []
    for at, fact in enumerate(facts):
        if _tells(fact) and not prose.tells(fact):
            fresh.append(fact)
        if at % A_STEP == 0:
            yield
    bare = {fact for fact in fresh if fact.kind != "note" and prose.holds(one_line(fact.value))}
    yield
    first = [fact for fact in fresh if fact not in bare]
    shelf = Shelf(max_tokens - count(LEDGER_LINE), count)
    yield from _fill_in_order(shelf, first, max_tokens)
    for _ in range(2):  # shown together, facts take less than one by one
        shelf.weigh()
        shown = Prose(format_ledger([*shelf.chosen]))
        rest = yield from _not_in(shown, [fact for fact in fresh if fact.kind in IDENTIFIERS])
        yield from shelf.fill([fact for fact in rest if fact not in bare], 1)
        yield from shelf.fill([fact for fact in rest if fact in bare], 1)
    yield from shelf.fill((yield from remarks_of(first)), 1)
    yield from shelf.fill([fact for fact in first if fact.kind == "user"], 1)
    exact = [fact for fact in first if fact.kind in IDENTIFIERS and not is_date(fact.value)]
    forms = yield from _with_every_value(shelf, exact)
    forms = yield from _fitting(forms, max_tokens, count)
    return tuple(forms[fact] for fact in fresh if fact in forms)


def _not_in(shown: Prose, facts: Sequence[Fact]) -> Steps[list[Fact]]:
    """The facts whose value the text does not hold."""
    found: list[Fact] = []
    for at, fact in enumerate(facts):
        if not shown.holds(one_line(fact.value)):
            found.append(fact)
        if at % A_STEP == 0:
            yield
    return found


def _fitting(forms: Forms, max_tokens: int, count: Count) -> Steps[Forms]:
    """As many of them, from the first on, as fit when they are shown."""
    facts = [*forms]

    def size(first: int) -> int:
        return count(format_ledger([forms[fact] for fact in facts[:first]]))

    def is_full(fits: int) -> Steps[bool]:
        yield
        return size(fits + 1) > _CLEARLY * max_tokens

    fits = yield from fewest(len(facts), is_full)  # what is clearly too much need not be tried one by one
    while fits and (excess := size(fits) - max_tokens) > 0:
        while fits and excess > 0:  # one by one where each might be enough
            fits -= 1
            excess -= _bytes_at_most(forms[facts[fits]], len(facts))
        yield
    return {fact: forms[fact] for fact in facts[:fits]}


def _bytes_at_most(fact: Fact, facts: int) -> int:
    """Bytes, and so tokens, that a ledger of so many facts loses at most with one of them."""
    shown = f"{item_of(fact)}{fact.about}{fact.label}{line_of(fact)[0]}"
    commas = facts if not fact.about and " " in shown else 0  # a value with a blank sets them between all of its kind
    return len(shown.encode("utf-8", "surrogatepass")) + commas + 8


def _with_every_value(shelf: Shelf, exact: Sequence[Fact]) -> Steps[Forms]:
    """What has been chosen, each fact in the form in which it is shown; with short forms of `exact` if they do not fit.

    Nothing changes without values of JSON, or if no code, amount or path is missing. Else facts are given up until all
    values of `exact` fit: user words, commands and errors, dates, notes beyond `NOTED`, then the rows chosen last,
    whose values return in short form. Rows in up to `WHOLE` of the tokens stay. What does not fit even so is left out.
    """
    wanted = sorted(exact, key=lambda fact: (not _is_prime(fact), not _is_keyed(fact)))
    shown = Prose(format_ledger([*shelf.chosen]))
    from_json = any(fact.label for fact in wanted)
    if not from_json or not (yield from _not_in(shown, [fact for fact in wanted if _is_prime(fact)])):
        return {fact: fact for fact in shelf.chosen}
    groups = yield from shelf.groups_to_give_up()

    def ledger_after(given_up: int) -> Steps[Forms]:
        gone = {fact for group in groups[:given_up] for fact in group}
        forms = {fact: fact for fact in shelf.chosen if fact not in gone}
        places = {line_of(fact) for fact in forms}
        shown = Prose(format_ledger([*forms]))
        for at, fact in enumerate(wanted):
            if at % A_STEP == 0:
                yield
            if fact not in forms and not shown.holds(one_line(fact.value)):
                forms[fact] = fact if line_of(fact) in places else short_form(fact, noun=noun_of(fact))
        return forms

    def fits_after(given_up: int) -> Steps[bool]:  # more groups are taken to leave more room
        forms = yield from ledger_after(given_up)
        yield
        return shelf.fits(forms.values())

    return (yield from ledger_after((yield from fewest(len(groups), fits_after))))


def _fill_in_order(shelf: Shelf, facts: Sequence[Fact], most: int) -> Steps[None]:
    """Classes 1 to 5 of `build_ledger`."""
    series = in_series(facts)
    told = [fact for fact in facts if fact.told and fact not in series]
    keyed = sorted((fact for fact in facts if _is_keyed(fact)), key=lambda fact: fact in series)
    yield from shelf.fill([fact for fact in facts if fact.said], SAID)
    yield from shelf.fill(told, TOLD)
    yield from shelf.fill(_in_turns([fact for fact in keyed if _is_prime(fact)], IDENTIFIERS, most), PRIME)
    exact = [fact for fact in keyed if not _is_prime(fact) and not is_date(fact.value)]
    yield from shelf.fill(_in_turns(exact, IDENTIFIERS, most), EXACT)
    yield from shelf.fill(told, NOTES)
    notes = Prose("\n".join(fact.value for fact in shelf.chosen if fact.kind == "note"))
    others = [fact for fact in facts if fact.kind not in IDENTIFIERS or not notes.holds(one_line(fact.value))]
    yield from shelf.fill(_in_turns([fact for fact in others if _is_prime(fact)], IDENTIFIERS, most), BARE)
    yield from shelf.fill(_in_turns([fact for fact in others if not _is_prime(fact)], IDENTIFIERS, most), BARE)
    plain = {fact for fact in facts if is_remark(fact)}
    if plain:
        plain |= {fact for fact in facts if fact.kind == "user" and not FIGURE.search(fact.value)}
    yield from shelf.fill(_in_turns([fact for fact in others if fact not in plain], ("note", *WORDS), most), 1)


def _is_keyed(fact: Fact) -> bool:
    """True for an identifier whose key is known, or that stands behind its noun: it costs few tokens."""
    return fact.kind in IDENTIFIERS and bool(fact.label or noun_of(fact) or is_pair(fact))


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
