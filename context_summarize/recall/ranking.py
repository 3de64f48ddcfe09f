"""Which rows answer a question, best first, and which passages of each: BM25 over passages, and what stands near."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import pairwise

from context_summarize.background import Steps
from context_summarize.recall.index import PassageIndex
from context_summarize.recall.search import query_words

_POSTINGS = 5_000
"""Passages looked at for one question: about five milliseconds. Its rarest words come first; common ones that do not
fit are left out. A limit by share would leave out the very subject of a short history."""
_PHRASES = 1_000
"""Passages looked at for one pair of neighbouring words."""
_CANDIDATES = 400
"""Passages that are weighed."""
_ROWS = 300
"""Rows of a ranking at most."""
_PHRASE_WEIGHT = 0.3
"""What a pair of neighbouring words adds to the weights of its words."""
_BESIDE = 0.2
"""Share of its neighbours' scores that a passage gets within a row."""
_LONG_ROW = 0.4
"""How much a long row must be better: by chance one of its many passages holds some of the words."""
_NEXT_ROW = 0.15
"""Share of the better neighbour's score that a row gets: an answer stands beside its question."""
_SHORT_ROWS = 0.12
"""The same for each of four neighbours of a row of one passage, as in a chat."""
_SILENT = 0.5
"""Share of its neighbour's score that a short row without any of the words gets."""
_SEEN = 0.5
"""Factor of a row that the view still shows: the model has it before its eyes."""
_WIDE = 4
"""Best rows whose passage is shown with its neighbours."""
_K1, _B = 1.2, 0.75
"""BM25's constants. Passages are so short that how often one holds a word says nothing."""
_QUOTED = re.compile(r'"([^"]{1,200})"')
_POSSESSIVE = re.compile("['\u2019]s$")
_STOP_LIST = """
a about across after again all also am an and any are as at be been before being between both but by can can't could
couldn't did didn't do does doesn't doing don't during each for from further had has hasn't have haven't having he her
here hers him his how i i'd i'll i'm i've if in into is isn't it its itself just like many me more most much my myself
no nor not of off on once only or other our ours out over own please regarding said same say she should show so some
such tell than that that's the their theirs them then there these they this those through to too under until up us very
was wasn't we were weren't what what's when where which while who whom whose why will with would you you're your yours
"""
_STOP_WORDS = frozenset(_STOP_LIST.split())


@dataclass(frozen=True, slots=True)
class Found:
    """A row that answers, by its number, and where the passages to show start and end in its text."""

    number: int
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What an index knows of a question."""

    rows: tuple[Found, ...]
    """Best first."""
    unknown: tuple[str, ...]
    """Words that the index does not know as such: parts of ids, and scripts without blanks."""


@dataclass(frozen=True, slots=True)
class _Term:
    phrase: str
    """In FTS5's query language."""
    count: int
    """Passages that hold it, up to a limit."""
    weight: float = 1.0


def telling(words: Sequence[str]) -> list[str]:
    """The words that say something; all of them if none does."""
    return [word for word in words if word not in _STOP_WORDS] or list(words)


def rank(index: PassageIndex, question: str, until: int, folded: int) -> Steps[Ranking]:
    """The rows up to number `until` that answer the question; those after `folded` count less, unless it is 0."""
    quoted = [" ".join(query_words(phrase)) for phrase in _QUOTED.findall(question)]
    words = [_POSSESSIVE.sub("", word) for word in query_words(_QUOTED.sub(" ", question))]
    words = [word for word in dict.fromkeys(words) if any(map(str.isalnum, word))]
    terms, unknown = yield from _terms(index, [phrase for phrase in quoted if phrase], words)
    scores = yield from _passage_scores(index, terms, until)
    best: dict[int, int] = {}
    for passage, score in scores.items():
        row = index.row_of(passage)
        if row not in best or score > scores[best[row]]:
            best[row] = passage
    rows = _row_scores(index, {row: scores[passage] for row, passage in best.items()}, until)
    if folded:
        rows = {row: score * (_SEEN if row > folded else 1.0) for row, score in rows.items()}
    order = sorted(rows, key=lambda row: (-rows[row], -row))[:_ROWS]
    found = (Found(row, _spans(index, row, best.get(row), wide=at < _WIDE)) for at, row in enumerate(order))
    return Ranking(tuple(found), tuple(unknown))


def _terms(index: PassageIndex, quoted: Sequence[str], words: Sequence[str]) -> Steps[tuple[list[_Term], list[str]]]:
    """What to look for, rarest first and together within `_POSTINGS`; and words that are not in the index."""
    most = _POSTINGS + 1
    known: list[_Term] = []
    unknown: list[str] = []
    for text in [*quoted, *(telling(words) if words else ())]:
        phrase = _phrase(text)
        count = index.count(phrase, most)
        if not count and len(text) > 2:
            phrase += "*"
            count = index.count(phrase, most)
        if count:
            known.append(_Term(phrase, count))
        elif not text.isascii() or any(map(str.isdigit, text)):
            unknown.append(text)
        yield
    known.sort(key=lambda term: term.count)
    chosen, left = known[:1], _POSTINGS - sum(term.count for term in known[:1])
    for term in known[1:]:
        if term.count > left:
            break
        chosen.append(term)
        left -= term.count
    pairs = yield from _pairs(index, words)
    return chosen + pairs, unknown


def _pairs(index: PassageIndex, words: Sequence[str]) -> Steps[list[_Term]]:
    """Neighbouring words of the question that the history holds as neighbours too."""
    found: list[_Term] = []
    for pair in pairwise(words):
        if not _STOP_WORDS.intersection(pair):
            phrase = _phrase(" ".join(pair))
            count = index.count(phrase, _PHRASES)
            if 0 < count < _PHRASES:
                found.append(_Term(phrase, count, _PHRASE_WEIGHT))
            yield
    return found


def _phrase(text: str) -> str:
    return '"' + text.replace('"', " ").replace("\0", " ") + '"'


def _passage_scores(index: PassageIndex, terms: Sequence[_Term], until: int) -> Steps[dict[int, float]]:
    """The best passages: BM25, more for those with more of the words, and a share of what stands beside them."""
    total = len(index)
    end = index.passages_of(until).stop if until <= index.rows else total + 1
    mean = index.chars / total if total else 1.0
    scores: defaultdict[int, float] = defaultdict(float)
    held: defaultdict[int, int] = defaultdict(int)
    for term in terms:
        weight = term.weight * math.log(1 + (total - term.count + 0.5) / (term.count + 0.5))
        for passage in index.passages_with(term.phrase, _POSTINGS):
            if passage < end:
                scores[passage] += weight
                held[passage] += term.weight == 1.0
        yield
    whole = max(1, sum(term.weight == 1.0 for term in terms))
    weighed: dict[int, float] = {}
    rough = sorted(((score * (whole + held[passage]), passage) for passage, score in scores.items()), reverse=True)
    for _, passage in rough[: 4 * _CANDIDATES]:
        start, stop = index.span(passage)
        brevity = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * (stop - start) / mean))
        weighed[passage] = scores[passage] * brevity * (1 + held[passage] / whole)
    best = {passage: weighed[passage] for passage in nlargest(_CANDIDATES, weighed, key=weighed.__getitem__)}
    return {passage: score + _beside(index, passage, best) for passage, score in best.items()}


def _beside(index: PassageIndex, passage: int, scores: Mapping[int, float]) -> float:
    row = index.passages_of(index.row_of(passage))
    return _BESIDE * sum(scores.get(at, 0.0) for at in (passage - 1, passage + 1) if at in row)


def _row_scores(index: PassageIndex, best: Mapping[int, float], until: int) -> dict[int, float]:
    """The score of each row's best passage, less in long rows, and a share of the rows beside it."""
    own = {row: score / (1 + _LONG_ROW * math.log(len(index.passages_of(row)))) for row, score in best.items()}
    rows: dict[int, float] = {}
    for row in {at for found in own for at in (found - 1, found, found + 1)}:
        size = len(index.passages_of(row))
        if not size or row > until:
            continue
        beside = max(own.get(row - 1, 0.0), own.get(row + 1, 0.0))
        if row not in own:
            rows[row] = _SILENT * beside / size**2
            continue
        around = sum(own.get(row + step, 0.0) for step in (-2, -1, 1, 2))
        rows[row] = own[row] + _NEXT_ROW * beside + _SHORT_ROWS * around / size**2
    return rows


def _spans(index: PassageIndex, row: int, best: int | None, *, wide: bool) -> tuple[tuple[int, int], ...]:
    """Where the best passage of a row stands, or its first one; with its neighbours if `wide`."""
    all_of_row = index.passages_of(row)
    best = best or all_of_row.start
    shown = [at for at in ((best - 1, best, best + 1) if wide else (best,)) if at in all_of_row]
    return tuple(_joined(index.span(at) for at in shown))


def _joined(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that touch as one."""
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], end
        else:
            out.append((start, end))
    return out
