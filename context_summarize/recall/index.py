"""The index of a history's passages: which messages have which words of a question, and where most of them meet."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

import regex

_PASSAGE = 170
"""After this many characters a passage ends with its sentence or line."""
_WINDOW = 700
"""Words meet in a place of at most this many characters, or in one passage."""
_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[\u3002\uff01\uff1b\uff1f])|\n+")
_MARK = re.compile(r"[\s,;|&<>(){}\[\]]")
_WORD = regex.compile(r"[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{Co}\p{M}]*")
"""A word as FTS5 separates it."""
_CHARACTER = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff])")
"""A character of a script that puts no blanks between words (Chinese, Thai), or uses them otherwise (Korean). Each
counts as a word."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_.\-/]")
_PUNCTUATION = "?!.,;:()[]{}<>*`'…"
_STOP_LIST = """
a about after again all also am an and any are as at be been before being between both but by can could d did do does
doing during each for from had has have he her here him his how i if in into is it its just like ll many me more most
much my no not of on only or other our out over please re s said same say she should show so some such t tell than that
the their them then there these they this those to too under until up us ve very was we were what when where which while
who whom whose why will with would you your user users asked say says wrote
"""
_STOP_WORDS = frozenset(_STOP_LIST.split())
"""Words of a question that do not say what it is about, even if few messages contain them."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place of a message where words of the question meet."""

    number: int
    start: int
    end: int
    """The place in the message's text; [start, end)."""
    words: frozenset[str]
    """The words of the question that the message has."""
    score: float


@dataclass(frozen=True, slots=True)
class Findings:
    """What the index knows of a question."""

    hits: tuple[Hit, ...]
    messages: int = 0
    """How many messages have one of the words."""
    words: tuple[str, ...] = ()
    """The words that were looked for; those behind … are beginnings of words."""
    nowhere: tuple[str, ...] = ()
    """Those that no message has."""
    most: int = 0
    """The most of the words that one message has."""


class PassageIndex:
    """The passages of messages, in order, for one thread at a time. Raises sqlite3.Error without FTS5."""

    def __init__(self) -> None:
        self._added = 0
        self._rows, self._starts, self._ends = array("q"), array("q"), array("q")
        """For each passage the number of its message, and its start and end in the message's text."""
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            tokens = "porter unicode61 remove_diacritics 2"
            self._connection.execute(f"CREATE VIRTUAL TABLE passages USING fts5(text, content='', tokenize='{tokens}')")
        except sqlite3.Error:
            self._connection.close()
            raise

    def add(self, texts: Iterable[str]) -> None:
        """Adds the texts of the next messages; an empty text is a message without passages."""
        for text in texts:
            self._added += 1
            for start, end in passages(text):
                self._rows.append(self._added)
                self._starts.append(start)
                self._ends.append(end)
                passage = (len(self._rows), _comparable(text[start:end]))
                self._connection.execute("INSERT INTO passages(rowid, text) VALUES (?, ?)", passage)
        self._connection.commit()

    def close(self) -> None:
        """Frees the memory."""
        self._connection.close()

    def find(self, question: str, first: int, last: int, *, every_place: bool = False) -> Findings:
        """Looks for the words of a question in the messages `first` to `last`.

        Returns one hit for each message, its best place; with `every_place` all places, of all messages.
        """
        terms = self._terms(question, bisect_left(self._rows, first) + 1, bisect_left(self._rows, last + 1))
        scores: dict[int, dict[str, float]] = {}
        held: dict[int, set[str]] = {}
        for word, found in terms.items():
            for passage, score in found.items():
                scores.setdefault(passage, {})[word] = score
                held.setdefault(self._row(passage), set()).add(word)
        quoted = {word for word, found in terms.items() if found and word.startswith('"')}
        held = {row: words for row, words in held.items() if quoted <= words} or held
        hits: list[Hit] = []
        for row, with_words in groupby(sorted(scores), key=self._row):
            if row in held:
                of_row = {passage: scores[passage] for passage in with_words}
                found_places = self._places(of_row, frozenset(held[row]), len(terms))
                hits += found_places if every_place else found_places[:1]
        nowhere = tuple(word for word, found in terms.items() if not found)
        most = max(map(len, held.values()), default=0)
        return Findings(tuple(hits), len(held), tuple(terms), nowhere, most)

    def _row(self, passage: int) -> int:
        return self._rows[passage - 1]

    def _places(self, scores: Mapping[int, Mapping[str, float]], words: frozenset[str], asked: int) -> list[Hit]:
        """Returns the places of one message, best first, by the scores of the words that each of its passages has.

        The message has these words of the `asked` ones. A place begins at each passage with a word. It counts each word
        once, by FTS5's bm25() in its best passage, and more with the share of the words that meet there.
        """
        places: list[Hit] = []
        passages = list(scores)
        for at, first in enumerate(passages):
            best: dict[str, float] = {}
            start, end = self._starts[first - 1], self._ends[first - 1]
            for passage in passages[at:]:
                if passage > first and self._ends[passage - 1] - start > _WINDOW:
                    break
                end = self._ends[passage - 1]
                for word, score in scores[passage].items():
                    best[word] = max(best.get(word, 0.0), score)
            score = sum(best.values()) * (1 + len(best) / asked)
            places.append(Hit(self._row(first), start, end, words, score))
        return sorted(places, key=lambda place: (-place.score, place.start))

    def _terms(self, question: str, first: int, last: int) -> dict[str, dict[int, float]]:
        """Returns the words of a question, each with the passages that have it, and their scores.

        A name that occurs as a whole is one word. If it does not, its parts are looked for too, and at last words that
        begin with it.
        """
        terms: dict[str, dict[int, float]] = {}
        for word in asked_words(question):
            terms[word] = found = self._with(phrase(word), first, last)
            if found:
                continue
            parts = _parts(word)
            terms |= {part: self._with(phrase(part), first, last) for part in parts if part not in _STOP_WORDS}
            if not parts and (found := self._with(f"{phrase(word)}*", first, last)):
                del terms[word]
                terms[f"{word}…"] = found
        return terms

    def _with(self, query: str, first: int, last: int) -> dict[int, float]:
        """Returns the passages that match this query of FTS5's language, with their scores."""
        select = "SELECT rowid, -rank FROM passages(?) WHERE rowid BETWEEN ? AND ?"
        return dict(self._connection.execute(select, (query, first, last)))


def asked_words(question: str) -> list[str]:
    """Returns the words of a question that say what it is about, or all of them; what stands in quotation marks is one.

    Each one has a letter or a digit.
    """
    words: list[str] = []
    parts = re.split('["“”„]', question)
    for at, part in enumerate(parts):
        quoted = at % 2 and at < len(parts) - 1
        words += [f'"{" ".join(part.split())}"'] if quoted else [word.strip(_PUNCTUATION) for word in part.split()]
    words = [word for word in dict.fromkeys(words) if _tokens(word)]
    return [word for word in words if not _STOP_WORDS.issuperset(_tokens(word))] or words


def phrase(word: str) -> str:
    """Returns the query of FTS5's language for words one after the other."""
    return f'"{" ".join(_tokens(word))}"'


def _tokens(text: str) -> list[str]:
    return [match[0] for match in _WORD.finditer(_comparable(text))]


def _parts(word: str) -> list[str]:
    """Returns the parts of a name, or pairs of characters where these count as words; nothing if there are none."""
    characters = _tokens(word)
    if _CHARACTER.search(word) and len(characters) > 2:
        return ["".join(pair) for pair in pairwise(characters)]
    parts = [part.casefold() for part in _HUMP.sub(" ", word.strip('"')).split() if _tokens(part)]
    return parts if len(parts) > 1 else []


def passages(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of each passage of a few sentences, in order; together they are the whole text."""
    start = 0
    while start < len(text):
        if sentence := _END.search(text, start + _PASSAGE, start + 2 * _PASSAGE):
            end = sentence.end()
        elif (end := len(text)) - start > 2 * _PASSAGE:
            marks = list(_MARK.finditer(text, start + _PASSAGE // 2, start + _PASSAGE))
            end = marks[-1].end() if marks else start + _PASSAGE
        yield start, end
        start = end


def _comparable(text: str) -> str:
    """Returns the text for FTS5: in one case, without variants of characters and lone surrogates."""
    text = unicodedata.normalize("NFKC", text.casefold()).encode("utf-8", "replace").decode().replace("\0", " ")
    return _CHARACTER.sub(r" \1 ", text)
