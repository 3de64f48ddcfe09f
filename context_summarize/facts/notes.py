"""Notes: a few words of a sentence in prose, with the values among them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from context_summarize.facts.patterns import one_line

MOST_READ = 40_000
"""Characters of one row that are read, half of them at its end."""
MOST_WORDS = 20
"""Words of a note; longer sentences keep those around their values."""
LEAST_TELLING = 7
"""Telling words of a note, where the sentence has as many."""
_LONGEST = 240
"""Characters of a note."""
_LONGEST_WORD = 60

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
FIGURE = re.compile(
    rf"(?<!\w){_MONTH}\.? \d{{1,2}}(?!\w)"
    r"|(?<![\w.,])[$€£¥]?\d[\d,]{0,18}(?<!,)(?:[.:]\d{1,6}){0,3}[%°A-Za-z]{0,3}(?!\w)"
    r"|(?<![A-Z])[A-Z]{2,6}\d{1,6}(?!\w)|(?<!\w)v\d+(?:\.\d+)+"
)
"""A number as people write it: `250ms`, `$1,200`, `3.5%`, `10:30`, `March 29`, `v1.2.0`."""

_FENCE = re.compile(r"(?m)^[ \t>]*(?:```|~~~)[^\n]*$")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|[。！？]|\n+|\s[^\w\s$€£¥\"'(]{2,}\s")  # noqa: RUF001
_CLAUSE = re.compile(r"(?<=[,;:—–)])\s|\s(?=(?:but|and|so|because|which|while|can|could|how|what)\s)|\s[-—–]\s")
_WORD = re.compile(r"(?<![\w-])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w-])")
_CODE_BEGINS = re.compile(r"\s{4,}|\t|\s*(?:import|def|class|return|const|let|var)\s")
_CODE_SIGN = re.compile(r"[{}<>=;|\\()\[\]$]")

_FILLER_TEXT = """
a an the i i'm i've i'd i'll im ive my me mine you your you're we we're we've our us it it's its is am are was were
be been being that that's this these those there so just really kinda kind sort like well very quite also then and
or but can could would should will may might do does did done has have had having if how what when which who please
help want wanted need needed trying try know think thinking let's hi hello hey thanks thank sure okay yes some any
more most much of got get getting
"""
_FILLER = frozenset(_FILLER_TEXT.split())
"""Words that a note does without."""
_CONNECTING_TEXT = """
at by for from in into on to with without before after until since not no never per than as
"""
_CONNECTING = frozenset(_CONNECTING_TEXT.split())


@lru_cache(maxsize=4_096)
def is_telling(word: str) -> bool:
    """True for a word that says something: no filler, three letters or more."""
    word = word.lower().replace("’", "'")
    return len(word) > 2 and word not in _FILLER and word not in _CONNECTING


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say something, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text) if is_telling(word))


def prose_of(text: str) -> str:
    """The lines that are prose: no fenced code, none that reads like code; at most `MOST_READ` characters are read."""
    if len(text) > MOST_READ:
        text = f"{text[: MOST_READ // 2]}\n{text[-MOST_READ // 2 :]}"
    parts = _FENCE.split(text)
    return "\n".join(line for part in parts[::2] for line in part.split("\n") if not _is_code(line))


def _is_code(line: str) -> bool:
    """True for an indented line, and for one in which more than one character in fifteen is a sign of code."""
    return _CODE_BEGINS.match(line) is not None or 15 * len(_CODE_SIGN.findall(line)) > len(line)


def sentences(text: str) -> Iterator[str]:
    """The sentences of prose, each on one line; lists and headings count as sentences."""
    for sentence in _SENTENCE.split(text):
        flat = one_line(sentence).lstrip("#*+->• ")
        if flat:
            yield flat


def note_of(sentence: str, values: tuple[str, ...] = (), most_words: int = MOST_WORDS) -> str:
    """The words of a sentence that say what its values are, in the sentence's order; "" if they say nothing.

    Args:
        values: what must be kept beside figures.
    """
    clauses = [clause.split() for clause in _CLAUSE.split(sentence)]
    keeps = [_holds_value(" ".join(clause), values) for clause in clauses]
    if not any(keeps):
        return ""
    first, last = keeps.index(True), len(keeps) - 1 - keeps[::-1].index(True)
    for at in range(first, last):  # lists: "every Monday, Wednesday and Friday"
        keeps[at] = keeps[at] or len(clauses[at]) <= 3
    told = [sum(map(is_telling, _plain(clause))) for clause in clauses]
    _widen(keeps, told)
    words = [word for clause, kept in zip(clauses, keeps, strict=True) if kept for word in clause]
    words = _most([word for word in words if _stays(word)], values, most_words)
    while words and words[-1].strip(".,;:!?").lower() in _CONNECTING:
        words.pop()
    note = " ".join(words).strip(" ,;:-—–*_`")
    if len(note) > _LONGEST or not telling_words(note):
        return ""
    return note


def _plain(words: list[str]) -> list[str]:
    return [match[0] for word in words if (match := _WORD.search(word))]


def _holds_value(clause: str, values: tuple[str, ...]) -> bool:
    return FIGURE.search(clause) is not None or any(value in clause for value in values)


def _widen(keeps: list[bool], told: list[int]) -> None:
    """Takes neighbours in, those before first, until there are enough telling words."""
    total = sum(count for count, kept in zip(told, keeps, strict=True) if kept)
    at = keeps.index(True)
    last = len(keeps) - 1 - keeps[::-1].index(True)
    order = [*range(at - 1, -1, -1), *range(at, len(keeps))]
    for index in order:
        if total >= (LEAST_TELLING if index < at else LEAST_TELLING // 2) or index > last + 2:
            break
        if not keeps[index] and told[index]:
            keeps[index] = True
            total += told[index]


def _stays(word: str) -> bool:
    bare = word.strip(".,;:!?()\"'“”*_`").lower().replace("’", "'")
    is_month = word.startswith("May")
    return bool(bare) and (bare not in _FILLER or is_month) and len(word) <= _LONGEST_WORD


def _most(words: list[str], values: tuple[str, ...], most: int) -> list[str]:
    """At most so many words: those nearest to a value, in their order."""
    words = [word.strip("*`") for word in words]
    if len(words) <= most:
        return words
    places = [
        at for at, word in enumerate(words) if any(map(str.isdigit, word)) or any(value in word for value in values)
    ]
    near = sorted(range(len(words)), key=lambda at: (_far(at, places), at))
    kept = sorted(near[:most])
    return [words[at] for at in kept]


def _far(at: int, places: list[int]) -> int:
    """Distance of a word from the nearest value; what stands behind a value counts double. Without values its place."""
    after = bisect_left(places, at)
    distances = [place - at for place in places[after : after + 1]]
    distances += [2 * (at - place) for place in places[max(0, after - 1) : after]]
    return min(distances, default=at)


_CHANGES_TEXT = """
now improved increased reduced dropped rose raised lowered grew fell went updated changed moved set switched
adjusted currently already about around approximately only
"""
_CHANGES = frozenset(_CHANGES_TEXT.split())


def subject_of(note: str) -> tuple[str, ...]:
    """What the one figure of a note is a value of: all words before it and its unit; () if that is not plain.

    Two notes with one subject are an earlier and a later value of one thing. Dates have no subject here: they tell when
    something was, and two of them may both hold.
    """
    figures = list(FIGURE.finditer(note))
    if len(figures) != 1 or figures[0][0][:1].isalpha():
        return ()
    before = [word.lower() for word in _WORD.findall(note[: figures[0].start()]) if is_telling(word)]
    words = [word for word in before if word not in _CHANGES]
    if len(words) < 2 and len(note.split()) > 3 + len(before):
        return ()
    following = note[figures[0].end() :].split()
    unit = following[0].lower().strip(".,;:") if following and figures[0][0][-1].isdigit() else ""
    return (*words, re.sub(r"[\d.,:]", "", figures[0][0]), unit) if words else ()


def figure_of(note: str) -> str:
    """The first figure of a note."""
    found = FIGURE.search(note)
    return found[0] if found else ""


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence, or the line, that holds this part of a text; at most 200 characters on each side are looked at."""
    before, after = text[max(0, start - 200) : start], text[end : end + 200]
    head = _SENTENCE.split(before)[-1]
    tail = _SENTENCE.split(after, maxsplit=1)[0]
    return one_line(f"{head}{text[start:end]}{tail}").lstrip("#*+->• ")
