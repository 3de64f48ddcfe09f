"""Quotations within a text: where they are, and a text in which each is one sign, so that no sentence ends in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.facts.pasted import GAP
from context_summarize.facts.patterns import one_line

LONGEST = 200
"""Characters of a quotation that a sentence may hold; a longer one, or one over several paragraphs, becomes `[…]`."""

OPEN, CLOSE, ENDS = "\ufdd0", "\ufdd1", "\ufdd2"
"""Around a quotation's number; `ENDS` follows one that ends like a sentence. No text has these characters."""
QUOTATION = re.compile(f"{OPEN}(\\d+){CLOSE}{ENDS}?")

_SIGNS = re.compile("[\"“”„«»\u2039\u203a「」『』\u2018\u2019']")
_PAIRS = {
    '"': '"', "'": "'", "\u2018": "\u2019", "“": "”", "„": "“”", "”": "”", "«": "»", "»": "«",
    "\u2039": "\u203a", "\u203a": "\u2039", "「": "」", "『": "』",
}  # fmt: skip
"""The signs that open a quotation, and what may close it."""
_SINGLE = frozenset("'\u2018\u2019")
_TOLD_BY_SIDES = frozenset("\"'\u2018\u2019”")
"""Signs that are also apostrophes, inches, or open and close alike: what stands beside them tells."""
_TICKS = re.compile("`+")
_PARAGRAPH = re.compile(r"\n(?:[ \t]*\n)+")


@dataclass(frozen=True, slots=True)
class Shielded:
    """A text with signs in place of its quotations."""

    text: str
    quotations: tuple[str, ...]

    def expand(self, sentence: str, at: int) -> tuple[str, int]:
        """The sentence with its quotations, and where position `at` of it is then."""
        return self._filled(sentence), len(self._filled(sentence[:at]))

    def _filled(self, text: str) -> str:
        return QUOTATION.sub(lambda match: self.quotations[int(match[1])], text)


def shield(text: str) -> Shielded:
    """The text with a sign for every quotation and inline code."""
    text = re.sub(f"[{OPEN}{CLOSE}{ENDS}]", "", text)
    pieces: list[str] = []
    kept: list[str] = []
    at = 0
    for start, end in _outermost(_spans(text)):
        quotation = text[start:end]
        ends = ENDS if quotation.strip("\"'”\u2019»\u203a“`")[-1:] in tuple(".!?…") else ""
        pieces.append(f"{text[at:start]}{OPEN}{len(kept)}{CLOSE}{ends}")
        long = len(quotation) > LONGEST or _PARAGRAPH.search(quotation) is not None
        kept.append(GAP if long else one_line(quotation))
        at = end
    pieces.append(text[at:])
    return Shielded("".join(pieces), tuple(kept))


def _outermost(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def _spans(text: str) -> list[tuple[int, int]]:
    """The quotations (start, end), nested ones too. One that is not closed ends with its paragraph."""
    breaks = [match.start() for match in _PARAGRAPH.finditer(text)]
    code = _code(text, breaks)
    inside = [start for start, _ in code]
    spans = list(code)
    pending: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    inch: int | None = None
    for match in _SIGNS.finditer(text):
        sign, at = match[0], match.start()
        within = bisect_right(inside, at) - 1
        if within >= 0 and at < code[within][1]:
            continue
        opens, closes = _sides(text, at) if sign in _TOLD_BY_SIDES else (True, True)
        if closes and waiting[sign]:
            start = _close(pending, waiting, sign)
            if sign not in _SINGLE or bisect_right(breaks, start) == bisect_right(breaks, at):
                spans.append((start, at + 1))
            if sign == '"' and text[at - 1 : at].isdigit():
                inch = start
        elif closes and not opens and sign == '"' and inch is not None and not text[at - 1 : at].isdigit():
            # An inch sign within the quotation was taken for its end.
            spans.append((inch, at + 1))
            inch = None
        elif opens and sign in _PAIRS:
            waiting.update(_PAIRS[sign])
            pending.append((sign, at))
    for sign, start in pending:
        if sign not in _SINGLE and _introduced(text, start):
            following = bisect_right(breaks, start)
            spans.append((start, breaks[following] if following < len(breaks) else len(text)))
    return spans


def _introduced(text: str, at: int) -> bool:
    """True for a sign at the beginning of a line, or after a colon."""
    before = text[max(at - 40, 0) : at].rpartition("\n")[2]
    return before.rstrip().endswith(":") or (len(before) < 40 and not before.strip(" \t-*+"))


def _close(pending: list[tuple[str, int]], waiting: Counter[str], sign: str) -> int:
    """Takes the newest quotation that the sign closes from `pending`, with all that opened later; returns its start."""
    while True:
        opened, start = pending.pop()
        waiting.subtract(_PAIRS[opened])
        if sign in _PAIRS[opened]:
            return start


def _sides(text: str, at: int) -> tuple[bool, bool]:
    """(may open, may close) for the sign at a position. `5" wide` and `don't` open nothing."""
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    word_before, word_after = _spaced_word(before), _spaced_word(after)
    space_before, space_after = not before.strip(), not after.strip()
    if space_before and space_after:
        return True, True
    return not word_before and not space_after, not space_before and not word_after


def _spaced_word(char: str) -> bool:
    """True for a character of a word in a script that writes spaces between words."""
    return char.isalnum() and ord(char) < 0x2E80


def _code(text: str, breaks: Sequence[int]) -> list[tuple[int, int]]:
    """Inline code: from a run of backticks to the next run of as many in the same paragraph."""
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(text)]
    nearest: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        start, end = runs[index]
        closing[index] = nearest.get(end - start)
        nearest[end - start] = index
    found: list[tuple[int, int]] = []
    index = 0
    while index < len(runs):
        start, other = runs[index][0], closing[index]
        if other is not None and bisect_right(breaks, start) == bisect_right(breaks, runs[other][0]):
            found.append((start, runs[other][1]))
            index = other
        index += 1
    return found
