"""Finds secrets by their own form, or at a place where only a secret can be: by `data/formats.toml`; private keys."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from context_summarize.redaction.words import filled, is_ordinary, parts_of, read, shapes

Rule = Callable[[str], Iterator["Span"]]
"""Finds places of secrets in a text."""

KEY = "private key"
_TABLES, _IN = read("formats"), shapes("formats.in")
_KEY_AT, _KEY_IN = shapes("keys.at"), shapes("keys.in")


@dataclass(frozen=True, slots=True)
class Span:
    """One secret: `text[first:end]`."""

    first: int
    end: int
    kind: str


def _mark(span: Span) -> str:
    return f"[redacted: {span.kind}]"


def replaced(text: str, spans: Iterable[Span], by: Callable[[Span], str] = _mark) -> str:
    """Returns the text with its mark in place of each span; of spans that overlap, the first one's."""
    out, at = list[str](), 0
    for span in sorted(spans, key=lambda span: (span.first, -span.end)):
        if span.first >= at:
            out += [text[at : span.first], by(span)]
        at = max(at, span.end)
    return "".join([*out, text[at:]])


def is_mixed(value: str) -> bool:
    """Returns True if the value has both letters and digits, which prose and names seldom have."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def turns(value: str) -> int:
    """Returns how often a letter and a digit follow each other: twice in drawn characters, and in no name."""
    return len(re.findall(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", value))


def is_real(value: str) -> bool:
    """Returns True if the value is no placeholder, and does not say that it is an example."""
    return _IN["not_real"].search(value) is None


CHECKS: dict[str, Callable[[str], bool]] = {
    "any": bool,
    "mixed": is_mixed,
    "drawn": lambda value: turns(value) > 1 and is_real(value),
    "real": is_real,
    "password": lambda value: is_mixed(value) and is_real(value),
    "chosen": lambda value: is_real(value.strip("\"'`")) and not is_ordinary(value),
}
"""By their names in the tables."""


def _rule(kind: str, check: Callable[[str], bool], pattern: re.Pattern[str]) -> Rule:
    """Finds one form. The group `secret` is replaced, or the whole match if there is no such group."""
    group = "secret" if "secret" in pattern.groupindex else 0

    def places(text: str) -> Iterator[Span]:
        return (Span(*found.span(group), kind) for found in pattern.finditer(text) if check(found[group]))

    return places


class Table:
    """Rules, each with its words. Every match of a rule contains one of them, so a text without them is not searched.

    Args:
        name: the table's name in the file.
        form: the text around each pattern, with `{}` in its place.
        more: the words and the rule of searches that are no patterns; they come last.
    """

    def __init__(self, name: str, form: str, *more: tuple[Iterable[str], Rule]) -> None:
        short = {part: f"(?:{text})" for part, text in parts_of(_TABLES["short"]).items()}
        self._rules: list[tuple[Iterable[str], Rule]] = []
        for kind, check, words, pattern in _TABLES[name]:
            short["WORDS"] = f"(?:{'|'.join(map(re.escape, words.split()))})"
            full = re.compile(filled(form.replace("{}", pattern.lstrip()), short))
            self._rules.append((words.split(), _rule(kind, CHECKS[check], full)))
        self._rules += more

    def rules(self, text: str) -> list[Rule]:
        """Returns the rules that may find something in the text, in their order."""
        return [rule for words, rule in self._rules if any(word in text for word in words)]


TOKENS = Table("tokens", "<START>(?:{})<END>")
"""Each match is part of a run of at least `SHORTEST` characters without a blank."""
SHORTEST = 16


def keys(text: str) -> Iterator[Span]:
    """Finds private keys, whole or in part, also where line numbers, marks or times precede their lines.

    A key is a chain of rows of base64, beside a mark that says where a private key begins or ends.
    """
    for chain in _KEY_IN["chain"].finditer(text):
        first, end = chain.span("rows")
        begin = _KEY_IN["begin"].search(text, max(0, first - 2_000), first)
        close = _KEY_AT["end"].match(text, end)
        if begin or close or _KEY_IN["in_base64"].search(chain["rows"]):
            yield Span(begin.start() if begin else first, close.end() if close else chain.end(), KEY)


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields where each word in base64 that stands for printable ASCII begins and ends, and what it stands for."""
    for found in _KEY_IN["encoded"].finditer(text):
        plain = b64decode(found[0])
        if plain.isascii() and (meant := plain.decode("ascii")).replace("\n", "").replace("\t", "").isprintable():
            yield *found.span(), meant
