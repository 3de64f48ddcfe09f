"""What the thread quotes of one group of rows: the user's sentences, the agent's closing words, names in calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from context_summarize.notes.forms import names_in, spelled
from context_summarize.notes.own_text import REMOVED, own_text
from context_summarize.notes.prose import cut, sentences_of, terms_of
from context_summarize.notes.rules import folded, has_sign
from context_summarize.transcript.groups import PartRow

SENTENCE = 400
"""Characters of a quoted sentence."""
_CLOSING = 240
"""Characters of the agent's closing words."""
_SHORT = 300
"""Characters of the longest argument that names are read from."""
_TOLD = re.compile(r"the user\b[^\n]{0,400}?\bthe user said: ?\n?(.+)", re.I | re.S)
"""A result in which a host stores what the user said instead of allowing the call."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the user."""

    number: int
    """Number of its message."""
    place: int
    """Its number in the message. Where something between two sentences was removed, one number is skipped."""
    text: str
    """The sentence on one line; the middle of a long one is left out."""
    letters: str
    """The letters and digits of the whole sentence; see `folded`."""
    terms: tuple[str, ...]
    is_rule: bool
    """True if it has a sign of a rule."""
    in_result: bool = False
    """True if a result tells it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of one group."""

    number: int = 0
    """Number of its first row."""
    by_agent: bool = False
    asked: int = 0
    """Number of its newest row in which the user speaks; 0 without one."""
    said: tuple[Sentence, ...] = ()
    closing: str = ""
    """The agent's words, if it makes no call."""
    names: tuple[str, ...] = ()
    """Names in the short arguments of its calls, each once."""


def told_by_user(result: str) -> str:
    """Returns the user's words that a host stores in a result; "" in any other."""
    told = _TOLD.match(result)
    return told[1] if told else ""


def words_of_user(row: PartRow) -> tuple[str, bool]:
    """Returns the user's words in a row, and True if a result tells them."""
    if row.role == "user" and row.said:
        return row.said, False
    told = next(filter(None, (told_by_user(text.text) for text in row.texts if text.kind == "result")), "")
    return told, bool(told)


def read(rows: Sequence[PartRow], number: int, signs: re.Pattern[str]) -> Reading:
    """Returns the reading of the rows of one group, after redaction; the first is the message of this number."""
    said, asked = list[Sentence](), 0
    for at, row in enumerate(rows, number):
        words, in_result = words_of_user(row)
        if words:
            asked = at
            said += _sentences(at, words, signs, in_result=in_result)
    first = rows[0]
    by_agent = first.role == "assistant"
    calls = [text.call.arguments for text in first.texts if text.call]
    short = "\n".join(text for text in texts_of(calls) if len(text) <= _SHORT)
    return Reading(
        number=number,
        by_agent=by_agent,
        asked=asked,
        said=tuple(said),
        closing=cut(first.said, _CLOSING) if by_agent and not calls else "",
        names=tuple(dict.fromkeys(map(spelled, names_in(short)))),
    )


def _sentences(number: int, text: str, signs: re.Pattern[str], *, in_result: bool) -> Iterator[Sentence]:
    place = 0
    for part in own_text(text).split(REMOVED):
        for said in sentences_of(part):
            place += 1
            if any(map(str.isalnum, said)):
                quoted = cut(said, SENTENCE)
                is_rule = has_sign(signs, quoted)
                yield Sentence(number, place, quoted, folded(said), terms_of(said), is_rule, in_result)
        place += 1


def texts_of(arguments: Any) -> Iterator[str]:
    """Yields every text in the arguments of calls; fields in the order of their names, which hosts do not change."""
    left = [arguments]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            left += reversed([one[key] for key in sorted(one, key=str)] if isinstance(one, dict) else one)
