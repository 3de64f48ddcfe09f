"""Private keys in a text, whole or in part, also under line prefixes of any tool, and what base64 hides.

A key is a chain of rows of base64, beside a mark that says where a private key begins or ends.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from context_summarize.redaction.formats import Span
from context_summarize.redaction.words import shapes

KIND = "private key"
_AT, _IN = shapes("keys.at"), shapes("keys.in")


def keys(text: str) -> Iterator[Span]:
    """Finds private keys, also where line numbers, marks or times precede their lines."""
    for chain in _IN["chain"].finditer(text):
        first, end = chain.span("rows")
        begin = _IN["begin"].search(text, max(0, first - 2_000), first)
        close = _AT["end"].match(text, end)
        if begin or close or _IN["in_base64"].search(chain["rows"]):
            yield Span(begin.start() if begin else first, close.end() if close else chain.end(), KIND)


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields where each word in base64 that stands for printable ASCII begins and ends, and what it stands for."""
    for found in _IN["encoded"].finditer(text):
        plain = b64decode(found[0])
        if plain.isascii() and (meant := plain.decode("ascii")).replace("\n", "").replace("\t", "").isprintable():
            yield *found.span(), meant
