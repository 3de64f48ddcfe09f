"""Private keys in a text, whole or in part, also under line prefixes of any tool, and what base64 hides.

A key is a chain of rows of base64, beside a mark that says where a private key begins or ends. Without a mark, rows of
a length that tools give to keys are one.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator

from context_summarize.redaction.formats import Span

KIND = "private key"
MARKS = ("PRIVATE KEY-----", "Private-Lines: ")
"""Each private key under a mark holds one of these."""
_BREAK = r"(?:\r?\n|\r|\\{1,6}(?:r\\{1,6})?n|<br\s?/?>)"
_NEXT = rf"(?:[\s\"'`\\,;|)>}}\].*$+]{{0,20}}?{_BREAK}){{1,2}}(?:(?!-----)[^\n\r]){{0,100}}?"
"""The end of a line and what a tool writes before the next one."""


def _chains(least: int) -> re.Pattern[str]:
    """Rows that follow each other, and a shorter one. The letter of an escaped line break before them stays outside."""
    row = rf"[A-Za-z0-9+/]{{{least},}}+={{0,2}}"
    return re.compile(
        rf"(?:{_BREAK})?(?P<rows>{row}(?:(?:{_NEXT}|\s){row})*+)(?:(?:{_NEXT}|\s)[A-Za-z0-9+/]{{12,39}}+={{0,2}})?"
    )


_NARROW, _WIDE = _chains(16), _chains(40)
_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID)\b[^\n\r]{0,200}?"
_BEGIN = re.compile(
    rf"(?:-----BEGIN {_NAME}|Private-Lines: \d{{1,4}})[^\w\\]{{0,40}}?"
    rf"(?:{_BREAK}(?:[^A-Za-z\n\r]{{0,100}}?|[^\n\r]{{0,60}}?{_HEADER})){{0,10}}(?:{_BREAK}[^\n\r]{{0,100}})?\Z"
)
"""The mark of a beginning, with nothing but headers and empty lines up to the first row."""
_END = re.compile(rf"(?:(?!-----BEGIN|Private-)[\s\S]){{0,400}}?(?:-----END {_NAME}|Private-MAC: ?\w*)")
_PUBLIC_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{1,40}-----(?:(?!-----)[\s\S])*\Z")
_PUBLIC_END = re.compile(r"(?:(?!-----)[\s\S]){0,400}-----END ")
_TOOL_ROW = re.compile(
    r"(?:(?<![A-Za-z0-9+/])|(?<=\\[nt]))(?:\+|//)?(?:[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{64})(?![A-Za-z0-9+/=])"
)
_IN_BASE64 = re.compile("UFJJVkFURSBLRVkt|BSSVZBVEUgS0VZL|QUklWQVRFIEtFWS")
"""`PRIVATE KEY-` in base64, at each of the three places that it may begin at."""
_ENCODED = re.compile(r"(?<![\w+/=.-])(?:[A-Za-z0-9+/]{4}){4,1000}+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?![\w+/=-])")


def keys(text: str) -> Iterator[Span]:
    """Finds private keys, also where line numbers, marks or times precede their lines."""
    for chain in (_NARROW if any(mark in text for mark in MARKS) else _WIDE).finditer(text):
        first, end = chain.span("rows")
        begin = _BEGIN.search(text, max(0, first - 2_000), first)
        close = _END.match(text, end)
        if begin or close:
            yield Span(begin.start() if begin else first, close.end() if close else chain.end(), KIND)
        elif _IN_BASE64.search(chain["rows"]):
            yield Span(first, chain.end(), KIND)
        elif sum(map(_is_drawn, _TOOL_ROW.findall(chain["rows"]))) > 1 and not _is_public(text, first, end):
            yield Span(first, end, KIND)


def decoded(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yields each word in base64 that stands for printable ASCII, with what it stands for."""
    for found in _ENCODED.finditer(text):
        plain = b64decode(found[0])
        if plain.isascii() and (meant := plain.decode("ascii")).replace("\n", "").replace("\t", "").isprintable():
            yield found, meant


def _is_public(text: str, first: int, end: int) -> bool:
    """Returns True beside a mark of something else, such as a certificate."""
    return bool(_PUBLIC_BEGIN.search(text, max(0, first - 2_000), first) or _PUBLIC_END.match(text, end))


def _is_drawn(row: str) -> bool:
    """Returns True for base64 of drawn bytes; a path or a hash in hex has few characters of some class."""
    return min(sum(map(str.isdigit, row)), sum(map(str.isupper, row)) // 3, sum(map(str.islower, row)) // 3) >= 3
