"""Private keys in a text, whole or in part, also under line prefixes of any tool, and what base64 hides.

A key is a chain of rows of base64, beside a mark that says where a private key begins or ends. Without a mark, rows of
a length that tools give to keys are one.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from context_summarize.redaction.formats import Span
from context_summarize.redaction.words import shapes

KIND = "private key"
MARKS = ("PRIVATE KEY-----", "Private-Lines: ")
"""Each private key under a mark has one of these."""
_AT, _IN = shapes("keys.at"), shapes("keys.in")


def keys(text: str) -> Iterator[Span]:
    """Finds private keys, also where line numbers, marks or times precede their lines."""
    for chain in _IN["narrow" if any(mark in text for mark in MARKS) else "wide"].finditer(text):
        first, end = chain.span("rows")
        begin = _IN["begin"].search(text, max(0, first - 2_000), first)
        close = _AT["end"].match(text, end)
        if begin or close:
            yield Span(begin.start() if begin else first, close.end() if close else chain.end(), KIND)
        elif _IN["in_base64"].search(chain["rows"]):
            yield Span(first, chain.end(), KIND)
        elif sum(map(_is_drawn, _IN["tool_row"].findall(chain["rows"]))) > 1 and not _is_public(text, first, end):
            yield Span(first, end, KIND)


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields where each word in base64 that stands for printable ASCII begins and ends, and what it stands for."""
    for found in _IN["encoded"].finditer(text):
        plain = b64decode(found[0])
        if plain.isascii() and (meant := plain.decode("ascii")).replace("\n", "").replace("\t", "").isprintable():
            yield *found.span(), meant


def _is_public(text: str, first: int, end: int) -> bool:
    """Returns True beside a mark of something else, such as a certificate."""
    return bool(_IN["public_begin"].search(text, max(0, first - 2_000), first) or _AT["public_end"].match(text, end))


def _is_drawn(row: str) -> bool:
    """Returns True for base64 of drawn bytes; a path or a hash in hex has few characters of some class."""
    return min(sum(map(str.isdigit, row)), sum(map(str.isupper, row)) // 3, sum(map(str.islower, row)) // 3) >= 3
