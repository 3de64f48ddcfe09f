"""Prose in pieces of a few words, and its words: what a note may quote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.transcript.rows import may_be_call

MOST_READ = 40_000
"""Characters of one row that are read, half of them at its end."""
_LONGEST, _MOST_WORDS = 280, 24
"""Characters of a piece; words of a sentence from which on it is divided at its clauses."""
_CLAUSE = re.compile(r"(?<=[,;:—–])\s+")

_FENCE = re.compile(r"(?m)^[ \t>]*(?:```|~~~)[^\n]*$")
_END = re.compile(r"(?<![.!?…])[.!?…。！？؟।\n]+[\"'”’)\]*_]*(?:\s+|$|(?<=[\n。！？؟।]))")  # noqa: RUF001 - they end sentences
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|st|[a-z])\.\s*$", re.I)
_MARKS = " \t#*+->•|`"
_AROUND = ".,;:!?…()[]{}<>\"'`*_“”‘’«»"  # noqa: RUF001 - quotes
_CODE_SIGN = re.compile(r"[{}<>=;|\\()\[\]$]")
_TIMES = frozenset({"yesterday", "today", "tonight", "tomorrow", "last", "next", "ago"})


def shortened(text: str, most: int) -> str:
    """The text on one line, of at most so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def ends_of(text: str, most: int) -> str:
    """The text on one line, or its start and its end, of about so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most // 2]} … {flat[-most // 2 :]}"


def words_of(text: str) -> dict[str, bool]:
    """The words and figures of a sentence, in lower case; true for a name, a figure, a word of time.

    These are what a reader would ask for. A name has a capital letter within the sentence.
    """
    found: dict[str, bool] = {}
    for at, word in enumerate(text.split()):
        low, is_asked, is_name = _word(word)
        if low:
            found[low] = found.get(low, False) or is_asked or (is_name and at > 0)
    return found


def _word(word: str) -> tuple[str, bool, bool]:
    """The word without signs around it, "" where it says nothing; a figure or a word of time; a name."""
    plain = word.strip(_AROUND)
    low = plain.lower()
    if plain[:1].isdigit():
        return low, True, False
    is_word = len(plain) > 2 and plain.replace("'", "").isalpha()
    return (low, low in _TIMES, not plain[0].islower()) if is_word else ("", False, False)


def sentences_of(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends; a line that begins with a small letter goes on with the one before."""
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if match[0][0] == "\n":
            after = text[end : end + 1]
            goes_on = match[0].count("\n") == 1 and after.isalpha() and not after.isupper() and end - start < _LONGEST
        else:
            goes_on = match[0][0] == "." and _ABBREVIATION.search(text, max(start, end - 10), end) is not None
        if not goes_on:
            yield start, end
            start = end
    if start < len(text):
        yield start, len(text)


def pieces_of(text: str) -> Iterator[str]:
    """The sentences of a text, each on one line; fenced code, calls and lines that read like code are passed over."""
    for prose in _FENCE.split(ends(text))[::2] if "```" in text or "~~~" in text else [ends(text)]:
        for start, end in sentences_of(prose):
            flat = " ".join(prose[start:end].split()).strip(_MARKS)
            if flat and not may_be_call(flat) and 12 * len(_CODE_SIGN.findall(flat)) <= len(flat):
                yield from _divided(flat)


def ends(text: str) -> str:
    """What is read of a text: all, or its start and its end."""
    return text if len(text) <= MOST_READ else f"{text[: MOST_READ // 2]}\n{text[-MOST_READ // 2 :]}"


def _divided(sentence: str) -> Iterator[str]:
    """The sentence, or runs of its clauses of about `_MOST_WORDS` words."""
    held = ""
    for clause in _CLAUSE.split(sentence) if sentence.count(" ") >= _MOST_WORDS else [sentence]:
        if held and held.count(" ") + clause.count(" ") >= _MOST_WORDS:
            yield held[:_LONGEST]
            held = ""
        held = f"{held} {clause}".strip()
    yield held[:_LONGEST]
