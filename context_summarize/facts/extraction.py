"""The exact values of a transcript with the words that say what they are, the most useful first."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from context_summarize.background import Steps, finished
from context_summarize.facts.commands import commands_in, error_lines
from context_summarize.facts.fact import Fact, FactKind
from context_summarize.facts.labels import Labelled, labelled
from context_summarize.facts.notes import note_of, prose_of, sentence_around, sentences
from context_summarize.facts.pairs import pair_around
from context_summarize.facts.patterns import (
    TOKEN,
    URL,
    Found,
    amounts_in,
    classify,
    codes_in,
    holds,
    readable,
    trimmed_url,
)
from context_summarize.facts.remarks import best_steps, is_worth_keeping
from context_summarize.facts.tally import Tally, What
from context_summarize.transcript.calls import ORPHAN, calls_in
from context_summarize.transcript.rows import RenderedRow

USER_HEAD, USER_TAIL = 160, 75
"""Characters kept from the start and the end of a long user message; a mark stands between them."""
IDENTIFIERS: tuple[FactKind, ...] = ("id", "path", "url", "amount")

_PIECE = 50_000
"""Characters of a row that are read in one step."""
CUT = " […] "
_FEW_WORDS = 6
"""Words that stand beside an identifier in prose."""
_NOTES, _REMARKS = 60, 60
"""Most notes that one row gives, and most remarks of all rows."""
_A_STEP, _A_FEW, _MANY = 20, 10, 500
"""Values whose words are looked for in one step, notes made in one, and words or values of JSON read in one."""
_TO_USER = re.compile(r"(?i)\byour?\b")
_OF_SELF = re.compile(r"\b(?:I|[Ww]e|[Mm]y|[Oo]ur)\b")
_SUPPOSED = re.compile(r"(?i)\W*(?:if|for example|e\.g|let's say|suppose|imagine|such as)\b")


def extract_facts(rows: Sequence[RenderedRow]) -> tuple[Fact, ...]:
    """The values that must not be paraphrased, newest and most repeated first.

    The score of a fact is `row / rows` of its last occurrence (0…1), plus an eighth for each doubling of its count, at
    most a half. So sixteen occurrences weigh as much as half a segment of age. On a tie the later fact comes first.
    The bare number of a JSON amount counts as the written amount (`250` as `$250`) if both occur. A later value of the
    same thing takes the place of the earlier one, and names it.
    """
    return finished(fact_steps(rows))


def fact_steps(rows: Sequence[RenderedRow]) -> Steps[tuple[Fact, ...]]:
    """The same as `extract_facts`, a row or a few dozen values a step."""
    tally = Tally()
    texts: list[str] = []
    for row in rows:
        texts.append(readable(row.text))
        yield
    shaped: set[str] = set()
    for text in texts:
        shaped |= codes_in(text)
        yield
    codes = frozenset(shaped)
    known: dict[str, tuple[Found, ...]] = {}
    asked: deque[str] = deque()
    said: list[tuple[int, str]] = []
    for index, (row, text) in enumerate(zip(rows, texts, strict=True)):
        found: Counter[Found] = Counter()
        for piece in _line_runs(text):
            found += yield from _identifiers(piece, codes, known)
            yield
        yield from _add_identifiers(tally, index, row, text, found, asked)
        for piece in _line_runs(row.text):
            for line in error_lines(piece, strict=row.role != "tool"):
                tally.add("error", line, index)
            yield
        if row.role == "user" and row.text.strip():
            tally.add("user", head_and_tail(row.text.strip()), index)
        yield
        yield from _add_notes(tally, index, row, said)
        tally.end_row(index)
        yield
    best = yield from best_steps([sentence for _, sentence in said])
    for at in best[:_REMARKS]:
        tally.add("note", said[at][1], said[at][0])
    for commands in commands_in(rows):
        for index, command in commands:
            tally.add("command", command, index)
        yield
    tally.join_bare_amounts()
    return tally.ranked(len(rows))


def _line_runs(text: str) -> Iterator[str]:
    """The text in pieces that are read in one step, cut at line ends or at least between words."""
    start = 0
    while len(text) - start > _PIECE:
        near = start + _PIECE // 2, start + _PIECE
        line, blank = text.rfind("\n", *near), text.rfind(" ", *near)
        end = line + 1 if line >= 0 else blank + 1 if blank >= 0 else start + _PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def identifiers(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts that `coverage` counts: paths, URLs, ids and amounts."""
    return tuple(fact for fact in facts if fact.kind in IDENTIFIERS)


def coverage(facts: Sequence[Fact], shown: str) -> float:
    """Share of the identifiers that `shown` holds as whole words, 0…1; 1.0 if there are none."""
    return finished(coverage_steps(facts, shown))


def coverage_steps(facts: Sequence[Fact], shown: str) -> Steps[float]:
    """The same as `coverage`, a few hundred facts a step."""
    wanted, held = identifiers(facts), 0
    for at, fact in enumerate(wanted):
        held += holds(shown, fact.value)
        if at % _MANY == 0:
            yield
    return held / len(wanted) if wanted else 1.0


def _identifiers(text: str, codes: frozenset[str], known: dict[str, tuple[Found, ...]]) -> Steps[Counter[Found]]:
    """URLs, amounts, ids and paths of one row; `known` caches the facts of each token."""
    found: Counter[Found] = Counter()
    if "://" in text:
        for url in map(trimmed_url, URL.findall(text)):
            if url:
                found["url", url] += 1
        text = URL.sub(" ", text)
        yield
    tokens = Counter(TOKEN.findall(text))
    yield
    for at, (token, times) in enumerate(tokens.items(), start=1):
        held = known.get(token)
        if held is None:
            held = known[token] = classify(token, codes)
        for value in held:
            found[value] += times
        if at % _MANY == 0:
            yield
    for amount in amounts_in(text):
        found["amount", amount] += 1
    return found


def _add_identifiers(
    tally: Tally, index: int, row: RenderedRow, text: str, found: Counter[Found], asked: deque[str]
) -> Steps[None]:
    """Counts the identifiers of one row with what they are; `asked` holds what open calls are about, oldest first."""
    keys = yield from _keys_of(row, asked)
    for done, ((kind, value), times) in enumerate(found.items(), start=1):
        what = keys.get(value)
        if what is None and kind in ("id", "amount"):
            pair = pair_around(text, value)
            what = What(pair, keyed=True) if pair else What(_words_beside(text, value))
        tally.add(kind, value, index, times, what or What())
        if done % _A_STEP == 0:
            yield


def _keys_of(row: RenderedRow, asked: deque[str]) -> Steps[dict[str, What]]:
    """Value → identity of its row, name of its key, for the JSON in a row."""
    if row.role == "tool":
        about = asked.popleft() if asked else ""
        if row.text.lstrip()[:1] not in ("{", "["):
            return {}
        return (yield from _by_value(labelled(row.text, about)))
    asked.clear()
    keys: dict[str, What] = {}
    if row.role == "assistant":
        for _, given in calls_in(row.text):
            values = list(labelled(given))
            keys.update((yield from _by_value(values)))
            asked.append(next((value.about for value in values if value.about and not value.label), ""))
    return keys


def _by_value(values: Iterable[Labelled]) -> Steps[dict[str, What]]:
    found: dict[str, What] = {}
    for at, (value, about, label) in enumerate(values):
        if value not in found or not label:
            found[value] = What(about, label, True)
        if at % _MANY == 0:
            yield
    return found


def _words_beside(text: str, value: str) -> str:
    """A few words of the sentence that holds a value; "" if they say nothing."""
    at = text.find(value)
    if at < 0:
        return ""
    note = note_of(sentence_around(text, at, at + len(value)), (value,), _FEW_WORDS)
    return note if holds(note, value) and note != value else ""


def _add_notes(tally: Tally, index: int, row: RenderedRow, said: list[tuple[int, str]]) -> Steps[None]:
    """Counts the notes of what the user says, and of what the assistant says to the user.

    Other sentences of the user, and of the assistant in the first person, go to `said` with their row.
    """
    told = row.role == "user"
    text = row.text if row.own is None else row.own
    if row.role == "tool" or ORPHAN in row.text:
        return
    notes = 0
    for sentence in sentences(prose_of(text)):
        note = _note(sentence, told) if notes < _NOTES else ""
        if note:
            tally.add("note", note, index, what=What(told=told))
            notes += 1
        elif is_worth_keeping(sentence) and (told or _OF_SELF.search(sentence)):
            said.append((index, sentence))
        if notes % _A_FEW == 0:
            yield


def _note(sentence: str, told: bool) -> str:
    """The note of a sentence with a figure; "" for others."""
    if not any(map(str.isdigit, sentence)):
        return ""
    if not told and (not _TO_USER.search(sentence) or _SUPPOSED.match(sentence)):
        return ""
    return note_of(sentence)


def head_and_tail(text: str) -> str:
    """The text, or its start and its end with a mark between them."""
    if len(text) <= USER_HEAD + len(CUT) + USER_TAIL:
        return text
    return text[:USER_HEAD].rstrip() + CUT + text[-USER_TAIL:].lstrip()
