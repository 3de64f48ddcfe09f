"""Places of secrets in a text, and the text with a mark at each of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from context_summarize.redaction.marks import mark


@dataclass(frozen=True, slots=True)
class Span:
    """One secret: `text[first:end]`."""

    first: int
    end: int
    kind: str


def replaced(text: str, spans: Sequence[Span]) -> str:
    """The text with the mark of its kind in place of each span; the spans are in order and do not overlap."""
    out, at = [], 0
    for span in spans:
        out += [text[at : span.first], mark(span.kind)]
        at = span.end
    return "".join([*out, text[at:]])


def in_order(spans: Iterable[Span]) -> list[Span]:
    """The spans in order; spans that overlap become one, of the kind of the longer one."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda span: span.first):
        if out and span.first < out[-1].end:
            last = out.pop()
            kind = span.kind if span.end - span.first > last.end - last.first else last.kind
            span = Span(last.first, max(last.end, span.end), kind)
        out.append(span)
    return out


def added(spans: Sequence[Span], found: Sequence[Span]) -> list[Span]:
    """Spans of a text, with those that were found after they had been replaced.

    `found` are places in `replaced(text, spans)`. One that overlaps a mark takes in what
    the mark stands for.
    """
    starts: list[int] = []
    shift = 0
    for span in spans:
        starts.append(span.first + shift)
        shift += len(mark(span.kind)) - (span.end - span.first)

    def back(place: int, end: bool) -> int:
        at = bisect_right(starts, place - end) - 1
        if at < 0:
            return place
        after = starts[at] + len(mark(spans[at].kind))
        if place >= after:
            return place - after + spans[at].end
        return spans[at].end if end else spans[at].first

    return in_order([*spans, *(Span(back(one.first, False), back(one.end, True), one.kind) for one in found)])
