"""Private keys in a text: blocks under line prefixes of any tool, ends without a beginning, and blocks in base64."""

from __future__ import annotations

import base64
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from context_summarize.redaction.spans import Span

KIND = "private key"
_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_BEGIN = re.compile(rf"-----BEGIN {_NAME}")
_END = re.compile(rf"-----END {_NAME}")
_BREAK = re.compile(r"\r?\n|\r|\\{1,6}(?:r\\{1,6})?n")
_RUN = re.compile(r"={0,2}+[A-Za-z0-9+/]++")
"""The base64 at the end of a line, read backwards."""
_RUN_ON = re.compile(r"[A-Za-z0-9+/]*+={0,2}")
"""The rest of the base64 that a line longer than usual is cut within."""
_CHECKSUM = re.compile(r"[A-Za-z0-9+/]{1,4}=(?![A-Za-z0-9+/=])")
"""The last line of a PGP block, read backwards."""
_HEADER = re.compile(r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID)\b")
_CLOSERS = " \t\r\"'`\\,;|)>}].*$"
_LONGEST_LINE = 700
"""Characters of a line that are searched for its end; base64 that goes on after them belongs to it."""
_MOST_LINES = 1_000
_MOST_TAIL = 8_000
_FULL = 40
"""Least base64 characters of a line within a key; the last line may have fewer."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a text, and the base64 that it ends with."""

    first: int
    end: int
    """Where the base64 begins and ends; equal where there is none."""
    prefix: str
    """What stands before the base64."""

    @property
    def is_full(self) -> bool:
        return self.end - self.first >= _FULL

    @property
    def is_blank(self) -> bool:
        """True for an empty line, and for a line number alone."""
        return not any(map(str.isalpha, self.prefix)) and self.end - self.first <= 6

    @property
    def shape(self) -> str:
        """The prefix with each number as 0 and each run of blanks as one, as it is alike in neighbouring lines."""
        return re.sub(r"\s+", " ", re.sub(r"\d+", "0", self.prefix))


def _line(text: str, start: int, end: int) -> _Line:
    line = text[start:end].rstrip(_CLOSERS)
    if line.endswith(("'+", '"+', "' +", '" +')):  # a literal, continued
        line = line[:-1].rstrip(_CLOSERS)
    found = _CHECKSUM.match(line[::-1]) or _RUN.match(line[::-1])
    first = len(line) - (found.end() if found else 0)
    return _Line(start + first, start + len(line), line[:first])


def _lines(text: str, at: int) -> Iterator[_Line]:
    """The lines from a place on, while they are no longer than lines of a key may be.

    A key that is written in one line, or whose lines a view has joined, is one long line.
    """
    for _ in range(_MOST_LINES):
        near = min(len(text), at + _LONGEST_LINE)
        found = _BREAK.search(text, at, near)
        if found is None and (rest := _RUN_ON.match(text, near)):
            near = rest.end()
            found = _BREAK.match(text, near)
        yield _line(text, at, found.start() if found else near)
        if found is None:
            return
        at = found.end()


def _block(text: str, begin: re.Match[str]) -> Span | None:
    """The key that begins here, with the prefixes of its lines; it may be cut off."""
    line_end = _BREAK.search(text, begin.end(), begin.end() + 40)
    if line_end is None or any(map(str.isalnum, text[begin.end() : line_end.start()])):
        return None
    shape: str | None = None
    end = skipped = 0
    short: list[_Line] = []
    for line in _lines(text, line_end.end()):
        if shape is None and not line.is_full:
            skipped += 1
            if skipped > 10 or not (line.is_blank or _HEADER.search(line.prefix)):
                return None
        elif shape is not None and (last := _END.search(line.prefix)):
            return Span(begin.start(), line.first - len(line.prefix) + last.end(), KIND)
        elif line.is_full and not short:
            shape, end = shape or line.shape, line.end
        elif len(short) < 2 and (line.shape == shape or line.is_blank):
            short.append(line)
        else:
            break
    if shape is None:
        return None
    if short and short[0].shape == shape and short[0].end - short[0].first >= 16:
        end = short[0].end
    return Span(begin.start(), end, KIND)


def blocks(text: str) -> Iterator[Span]:
    """Places of private keys, whole or cut off, whose lines may stand after line numbers, marks or times."""
    at = 0
    while begin := _BEGIN.search(text, at):
        span = _block(text, begin)
        if span is not None:
            yield span
        at = span.end if span else begin.end()


def tails(text: str) -> Iterator[Span]:
    """Places of private keys whose first lines are missing, as in the tail of a file."""
    at = 0
    breaks = [found.span() for found in _BREAK.finditer(text)]
    for end in _END.finditer(text):
        lines = _lines_before(text, breaks, max(at, end.start() - _MOST_TAIL), end.start())
        first = None
        short = 0
        for place, line in enumerate(lines):
            if line.is_full:
                first = line.first
            elif place == 0:
                pass  # what stands before the end mark itself
            elif first is None and short < 3:
                short += 1
            else:
                break
        if first is not None:
            yield Span(first, end.end(), KIND)
            at = end.end()


def _lines_before(text: str, breaks: list[tuple[int, int]], start: int, end: int) -> Iterator[_Line]:
    """The lines of `text[start:end]`, the last one first; `breaks` are the places between the lines of the text."""
    at = bisect_left(breaks, (end, end)) - 1
    while at >= 0 and breaks[at][1] > start:
        yield _end_of_line(text, breaks[at][1], end)
        end = max(start, breaks[at][0])
        at -= 1
    yield _end_of_line(text, start, end)


def _end_of_line(text: str, start: int, end: int) -> _Line:
    """The line; of a long one no more is read than its base64 needs, and `prefix` is not all of it."""
    near = max(start, end - _LONGEST_LINE)
    line = _line(text, near, end)
    return line if near == start or line.first > near else _line(text, start, end)


_ROW = re.compile(
    r"(?:(?<![A-Za-z0-9+/])|(?<=[\nn]\+)|(?<=\\n))(?:[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{64})(?![A-Za-z0-9+/=])"
)
"""A line of a key as tools write it; no other base64 of the kind is common."""
_EDGE = re.compile(r"-----(?P<edge>BEGIN|END) [A-Z0-9 ]{1,40}-----")
_BETWEEN = 120
"""Most characters between the base64 of two lines: the line's end and the next one's prefix."""


def middles(text: str) -> Iterator[Span]:
    """Places of two and more lines from within a private key, without its first and its last lines.

    Lines between the marks of something else, such as a certificate, are none.
    """
    edges = [(found.start(), found["edge"] == "BEGIN") for found in _EDGE.finditer(text)]
    first = end = count = 0
    for row in [*_ROW.finditer(text), None]:
        if row is not None and not _is_drawn_row(row[0]):
            continue
        if row is not None and count and _is_next(text[end : row.start()]):
            end, count = row.end(), count + 1
            continue
        if count > 1 and not _is_public(edges, first, end):
            yield Span(first, end, KIND)
        if row is not None:
            first, end, count = row.start(), row.end(), 1


def _is_drawn_row(row: str) -> bool:
    """True for base64 of drawn bytes; a path or a hash in hex has few characters of some class."""
    return min(sum(map(str.isdigit, row)), sum(map(str.isupper, row)) // 3, sum(map(str.islower, row)) // 3) >= 3


def _is_next(between: str) -> bool:
    return len(between) <= _BETWEEN and len(_BREAK.findall(between)) == 1


def _is_public(edges: list[tuple[int, bool]], first: int, end: int) -> bool:
    """True between the marks of something else: those of private keys are gone by then."""
    at = bisect_left(edges, (first, False))
    return (at > 0 and edges[at - 1][1]) or (at < len(edges) and not edges[at][1] and edges[at][0] - end < _MOST_TAIL)


_STEMS = ("UFJJVkFURSBLRVkt", "BSSVZBVEUgS0VZL", "QUklWQVRFIEtFWS")
"""`PRIVATE KEY-` in base64, at each of the three places that it may begin at."""
_STEM = re.compile("|".join(_STEMS))
_BASE64_BEFORE = re.compile(r"[A-Za-z0-9+/_-]*+")
_BASE64_AFTER = re.compile(
    r"[A-Za-z0-9+/_-]++(?:(?:\\{0,4}[nr]|\s){1,3}[ \t|>#]{0,40}[A-Za-z0-9+/_-]{40,}+)*+"
    r"(?:(?:\\{0,4}[nr]|\s){1,3}[ \t|>#]{0,40}[A-Za-z0-9+/_-]{1,76}+(?==))?={0,2}"
)


def encoded(text: str) -> Iterator[Span]:
    """Places of private keys in base64, as in a kubeconfig; lines of base64 may follow each other."""
    at = 0
    if not any(stem in text for stem in _STEMS):
        return
    while stem := _STEM.search(text, at):
        before = _BASE64_BEFORE.match(text[max(at, stem.start() - 4_000) : stem.start()][::-1])
        first = stem.start() - (before.end() if before else 0)
        after = _BASE64_AFTER.match(text, stem.start())
        at = after.end() if after else stem.end()
        if at - first >= 60 and b"PRIVATE KEY" in _decoded(text[first : stem.end() + 32]):
            yield Span(first, at, KIND)


def _decoded(head: str) -> bytes:
    head = re.sub(r"[^A-Za-z0-9+/]", "", head.replace("-", "+").replace("_", "/"))
    return base64.b64decode(head[: len(head) // 4 * 4])
