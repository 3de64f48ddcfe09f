"""Private keys in a text, whole or in part, also under line prefixes of any tool, and once more in base64.

A key is a chain of rows of base64, beside a mark that says where a private key begins or ends, or with such a mark in
base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_summarize.redaction.formats import Span

KIND = "private key"
_BREAK = r"(?:\r?\n|\r|\\{1,6}(?:r\\{1,6})?n)"
_NEXT = rf"(?:[\s\"'`\\,;|)>}}\].*$+]{{0,20}}?{_BREAK}){{1,2}}(?:(?!-----)[^\n\r]){{0,100}}?"
"""The end of a line and what a tool writes before the next one."""
_ROW = r"[A-Za-z0-9+/]{16,}+={0,2}"
_CHAIN = re.compile(
    rf"(?:{_BREAK})?(?P<rows>{_ROW}(?:(?:{_NEXT}|\s){_ROW})*+)(?:(?:{_NEXT}|\s)[A-Za-z0-9+/]{{12,39}}+={{0,2}})?"
)
"""Rows that follow each other, and a shorter one. The letter of an escaped line break before them stays outside."""
_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID)\b[^\n\r]{0,200}?"
_BEGIN = re.compile(
    rf"-----BEGIN {_NAME}[^\w\\]{{0,40}}?(?:{_BREAK}(?:[^A-Za-z\n\r]{{0,100}}?|[^\n\r]{{0,60}}?{_HEADER})){{0,10}}"
    rf"(?:{_BREAK}[^\n\r]{{0,100}})?\Z"
)
"""The mark of a beginning, with nothing but headers and empty lines up to the first row."""
_END = re.compile(rf"(?:(?!-----BEGIN)[\s\S]){{0,400}}?-----END {_NAME}")
IN_BASE64 = ("UFJJVkFURSBLRVkt", "BSSVZBVEUgS0VZL", "QUklWQVRFIEtFWS")
"""`PRIVATE KEY-` in base64, at each of the three places that it may begin at."""


def keys(text: str) -> Iterator[Span]:
    """Finds private keys, also where line numbers, marks or times precede their lines."""
    for chain in _CHAIN.finditer(text):
        first, end = chain.span("rows")
        begin = _BEGIN.search(text, max(0, first - 2_000), first)
        close = _END.match(text, end)
        if begin or close:
            yield Span(begin.start() if begin else first, close.end() if close else chain.end(), KIND)
        elif any(stem in chain["rows"] for stem in IN_BASE64):
            yield Span(first, chain.end(), KIND)
