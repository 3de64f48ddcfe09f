"""The exact values of a transcript, the most useful first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log2

from context_summarize.background import Steps, finished
from context_summarize.facts.commands import commands_in, error_lines
from context_summarize.facts.fact import Fact, FactKind
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
from context_summarize.transcript.rows import RenderedRow

USER_HEAD, USER_TAIL = 160, 75
"""Characters kept from the start and the end of a long user message; a mark stands between them."""
IDENTIFIERS: tuple[FactKind, ...] = ("id", "path", "url", "amount")

_PIECE = 50_000
"""Characters of a row that are read in one step."""
CUT = " […] "


@dataclass(slots=True)
class _Seen:
    count: int = 0
    row: int = 0
    order: int = 0


class _Tally:
    """Counts facts, and records the last place of each."""

    def __init__(self) -> None:
        self.seen: dict[tuple[FactKind, str], _Seen] = {}
        self._order = 0

    def add(self, kind: FactKind, value: str, row: int, times: int = 1) -> None:
        """Counts one value of row number `row`."""
        self._order += 1
        seen = self.seen.setdefault((kind, value), _Seen())
        seen.count += times
        seen.row, seen.order = row, self._order

    def join_bare_amounts(self) -> None:
        """Counts the bare `1250` of a JSON value as the written amount `$1,250`, if both occur."""
        amounts = [value for kind, value in self.seen if kind == "amount"]
        written = {value[1:].strip().replace(",", ""): value for value in amounts if value[0] in "$€£¥"}
        for value in amounts:
            if value in written:
                bare, known = self.seen.pop(("amount", value)), self.seen["amount", written[value]]
                known.count += bare.count
                known.row, known.order = max((known.row, known.order), (bare.row, bare.order))

    def ranked(self, rows: int) -> tuple[Fact, ...]:
        """The facts in the ledger's order, see `extract_facts`."""
        found = [(score((seen.row + 1) / rows, seen.count), seen.order, key) for key, seen in self.seen.items()]
        found.sort(key=lambda item: (-item[0], -item[1]))
        return tuple(Fact(kind, value, self.seen[kind, value].count) for _, _, (kind, value) in found)


def extract_facts(rows: Sequence[RenderedRow]) -> tuple[Fact, ...]:
    """The values that must not be paraphrased, newest and most repeated first.

    The score of a fact is `row / rows` of its last occurrence (0…1), plus an eighth for each doubling of its count, at
    most a half. So sixteen occurrences weigh as much as half a segment of age. On a tie the later fact comes first.
    The bare number of a JSON amount counts as the written amount (`250` as `$250`) if both occur.
    """
    return finished(fact_steps(rows))


def fact_steps(rows: Sequence[RenderedRow]) -> Steps[tuple[Fact, ...]]:
    """The same as `extract_facts`, a row a step."""
    tally = _Tally()
    texts: list[str] = []
    for row in rows:
        texts.append(readable(row.text))
        yield
    found: set[str] = set()
    for text in texts:
        found |= codes_in(text)
        yield
    codes = frozenset(found)
    known: dict[str, tuple[Found, ...]] = {}
    for index, (row, text) in enumerate(zip(rows, texts, strict=True)):
        for piece in _line_runs(text):
            _add_identifiers(tally, index, piece, codes, known)
            yield
        for piece in _line_runs(row.text):
            for line in error_lines(piece, strict=row.role != "tool"):
                tally.add("error", line, index)
            yield
        if row.role == "user" and row.text.strip():
            tally.add("user", head_and_tail(row.text.strip()), index)
        yield
    for index, command in commands_in(rows):
        tally.add("command", command, index)
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
    wanted = identifiers(facts)
    return sum(holds(shown, fact.value) for fact in wanted) / len(wanted) if wanted else 1.0


def score(place: float, count: int) -> float:
    return place + min(log2(max(count, 1)), 4.0) / 8


def _add_identifiers(
    tally: _Tally, index: int, text: str, codes: frozenset[str], known: dict[str, tuple[Found, ...]]
) -> None:
    """Counts URLs, amounts, ids and paths of one row; `known` caches the facts of each token."""
    if "://" in text:
        for url in map(trimmed_url, URL.findall(text)):
            if url:
                tally.add("url", url, index)
        text = URL.sub(" ", text)
    for token, times in Counter(TOKEN.findall(text)).items():
        found = known.get(token)
        if found is None:
            found = known[token] = classify(token, codes)
        for kind, value in found:
            tally.add(kind, value, index, times)
    for amount in amounts_in(text):
        tally.add("amount", amount, index)


def head_and_tail(text: str) -> str:
    if len(text) <= USER_HEAD + len(CUT) + USER_TAIL:
        return text
    return text[:USER_HEAD].rstrip() + CUT + text[-USER_TAIL:].lstrip()
