"""Prose in pieces of a few words: what a note may quote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.transcript.rows import may_be_call

MOST_READ = 40_000
"""Characters of one row that are read, half of them at its end."""
MOST_WORDS = 24
"""Words of a piece; a longer sentence is divided at its clauses."""
_LONGEST = 280
"""Characters of a piece."""

_FENCE = re.compile(r"(?m)^[ \t>]*(?:```|~~~)[^\n]*$")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - they end sentences
_CLAUSE = re.compile(r"(?<=[,;:—–])\s+|\s+(?=\()|(?<=\))\s+")
_BRACKETED = re.compile(r"\s*(\([^()]{4,}\))\s*")
"""A remark in brackets is a piece of its own."""
_MARKS = " \t#*+->•|`"
_WORD = re.compile(r"(?<!\w)[^\W\d_]{3,}(?:['’-][^\W\d_]+)*(?!\w)")
_NAME = re.compile(r"(?<=[^\W_][,;:'’] |[^\W_][^\W_] )[^\W\d_a-z][^\W\d_]+")
"""A word with a capital letter within a sentence."""
_FIGURE = re.compile(r"\d[\d.,:/%-]*")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPANS = ("week", "month", "year", "weekend", *_DAYS)
_TIMES = frozenset(
    {"yesterday", "today", "tonight", "tomorrow", "last", "next", "ago", *_SPANS, *(f"{one}s" for one in _SPANS)}
)
_CODE_SIGN = re.compile(r"[{}<>=;|\\()\[\]$]")

_FILLER_TEXT = """
the and for are was were been being that this these those there here just really very quite also then but can could
would should will shall may might must does did done has have had having what when which who whom why how please you
your yours our ours they them their his her its with from into onto than not all any some more most much many get got
let like want need know think make made thank thanks hello sure okay yes well now one only
"""
_FILLER = frozenset(_FILLER_TEXT.split())


def shortened(text: str, most: int) -> str:
    """The text on one line, of at most so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say something, in lower case."""
    return frozenset(word for word in map(str.lower, _WORD.findall(text)) if word not in _FILLER)


def marks_of(text: str, words: frozenset[str]) -> int:
    """How many names, figures and words of time a text of these words has: what a reader would ask for."""
    return len({*_NAME.findall(text)}) + len({*_FIGURE.findall(text)}) + len(_TIMES & words)


def pieces_of(text: str) -> Iterator[str]:
    """The sentences of a text, each on one line; fenced code, calls and lines that read like code are passed over."""
    if len(text) > MOST_READ:
        text = f"{text[: MOST_READ // 2]}\n{text[-MOST_READ // 2 :]}"
    for prose in _FENCE.split(text)[::2]:
        for sentence in _SENTENCE.split(prose):
            flat = " ".join(sentence.split()).strip(_MARKS)
            if flat and not may_be_call(flat) and 12 * len(_CODE_SIGN.findall(flat)) <= len(flat):
                for part in _BRACKETED.split(flat) if "(" in flat else [flat]:
                    if any(map(str.isalnum, part)):
                        yield from _divided(part.strip(_MARKS))


def _divided(sentence: str) -> Iterator[str]:
    """The sentence, or runs of its clauses of at most `MOST_WORDS` words."""
    if sentence.count(" ") < MOST_WORDS:
        yield sentence[:_LONGEST]
        return
    held: list[str] = []
    words = 0
    for clause in _CLAUSE.split(sentence):
        size = len(clause.split())
        if held and words + size > MOST_WORDS:
            yield " ".join(held)[:_LONGEST]
            held, words = [], 0
        held.append(clause)
        words += size
    if held:
        yield " ".join(held)[:_LONGEST]
