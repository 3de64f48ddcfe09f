"""Finds secrets by their own form, or at a place where only a secret can be, by the tables of `data/formats.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from operator import itemgetter

from context_summarize.redaction.words import ORDINARY

Check = Callable[[str], bool]
Rule = Callable[[str], Iterator["Span"]]
"""Finds places of secrets in a text."""

QUOTE = "[\"'`]"
_TABLES = tomllib.loads((resources.files("context_summarize.redaction") / "data/formats.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Span:
    """One secret: `text[first:end]`."""

    first: int
    end: int
    kind: str


def _mark(span: Span) -> str:
    return f"[redacted: {span.kind}]"


def replaced(text: str, spans: Sequence[Span], by: Callable[[Span], str] = _mark) -> str:
    """Returns the text with its mark in place of each span; the spans are in order and do not overlap."""
    out, at = [], 0
    for span in spans:
        out += [text[at : span.first], by(span)]
        at = span.end
    return "".join([*out, text[at:]])


def is_mixed(value: str) -> bool:
    """Returns True if the value has both letters and digits, which prose and names seldom have."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def turns(value: str) -> int:
    """Returns how often a letter and a digit follow each other."""
    return len(re.findall(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", value))


def is_drawn(value: str) -> bool:
    """Returns True if letters and digits take turns at least twice, as drawn characters do and no name does."""
    return turns(value) > 1


_NOT_REAL = re.compile(
    r"(?is)\A(?:[*x.•#_-]+|[*!?][a-z_-]+|<.*|\$[a-z_{(].*|[%{\[].*"
    r"|none|null|nil|true|false|undefined|password|passwd|pass|pwd|secret|token)\Z"
    r"|\$\{|\{\{|example|placeholder|change[_-]?me|(?<![a-z])your(?![a-z])|your[_-]|xxxx|dummy|redacted"
)


def is_real(value: str) -> bool:
    """Returns True if the value is no placeholder, and does not say that it is an example."""
    return _NOT_REAL.search(value) is None


CHECKS: dict[str, Check] = {
    "any": bool,
    "mixed": is_mixed,
    "drawn": lambda value: is_drawn(value) and is_real(value),
    "real": is_real,
    "password": lambda value: is_mixed(value) and is_real(value),
    "chosen": lambda value: is_real(value.strip("\"'`")) and not ORDINARY.match(value),
}
"""By their names in the tables."""


def _rule(kind: str, check: Check, pattern: re.Pattern[str]) -> Rule:
    """Finds one form. The group `secret` is replaced, or the whole match if there is no such group."""
    group = "secret" if "secret" in pattern.groupindex else 0

    def places(text: str) -> Iterator[Span]:
        return (Span(*found.span(group), kind) for found in pattern.finditer(text) if check(found[group]))

    return places


def _search_for(words: list[str]) -> re.Pattern[str]:
    """Returns one search for all words, the longest first. It tries only places that begin with two of their signs."""
    firsts = ((first, sorted(group, reverse=True)) for first, group in groupby(words, key=itemgetter(0)))
    tries = (f"{re.escape(first)}(?:{'|'.join(re.escape(word[1:]) for word in group)})" for first, group in firsts)
    shown = range(min(2, *map(len, words)))
    begin = "".join(f"[{''.join(map(re.escape, {word[at] for word in words}))}]" for at in shown)
    return re.compile(f"(?={begin})(?=({'|'.join(tries)}))")


class Table:
    """Rules, each with its words. Every match of a rule contains one of them, so a text without them is not searched.

    Args:
        name: the table's name in the file.
        form: the text around each pattern, with `{}` in its place.
        more: the words and the rule of searches that are no patterns; they come last.
    """

    def __init__(self, name: str, form: str, *more: tuple[Iterable[str], Rule]) -> None:
        self._rules: list[tuple[frozenset[str], Rule]] = []
        for kind, check, words, pattern in _TABLES[name]:
            any_word = f"(?:{'|'.join(map(re.escape, words.split()))})"
            lines = map(str.strip, pattern.splitlines())
            full = form.format("".join(lines)).replace("<WORDS>", any_word)
            for short, meaning in _TABLES["short"].items():
                full = full.replace(f"<{short}>", f"(?:{meaning})")
            self._rules.append((frozenset(words.split()), _rule(kind, CHECKS[check], re.compile(full))))
        self._rules += [(frozenset(held), rule) for held, rule in more]
        every = sorted({word for words, _ in self._rules for word in words})
        self._within = {word: {part for part in every if word.startswith(part)} for word in every}
        ascii_words = [word for word in every if word.isascii()]
        self._words = {True: _search_for(ascii_words), False: _search_for(every)}

    def rules(self, text: str) -> list[Rule]:
        """Returns the rules that may find something in the text, in their order."""
        if not (found := set(self._words[text.isascii()].findall(text))):
            return []
        held = set().union(*(self._within[word] for word in found))
        return [rule for words, rule in self._rules if not words.isdisjoint(held)]


TOKENS = Table("tokens", "<START>(?:{})<END>")
"""Each match is part of a run of at least `SHORTEST` characters without a blank."""
SHORTEST = 16
