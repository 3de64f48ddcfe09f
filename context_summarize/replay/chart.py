"""The chart of a replay as SVG, with tokens over requests; and `element`, which builds markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

from context_summarize.replay.result import ReplayResult

WIDTH, HEIGHT = 880, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 764, 16, 286
_MOST_BUDGETS = 4
"""The chart is at most this many budgets high; the curve of a longer history ends at the top."""
_LINE = 15
"""Pixels from one line of a label to the next."""

Point = tuple[float, float]


class _Scale:
    """Converts to pixels: requests, counted from 1, from the left, and tokens from the bottom."""

    def __init__(self, requests: int, most: float) -> None:
        self._requests = requests
        self.most = most

    def x(self, request: float) -> float:
        return _LEFT + (request - 1) / max(1, self._requests - 1) * (_RIGHT - _LEFT)

    def y(self, tokens: float) -> float:
        return _BOTTOM - tokens / self.most * (_BOTTOM - _TOP)

    def path(self, points: Iterable[Point]) -> str:
        return "M" + "L".join(f"{self.x(request):.1f},{self.y(tokens):.1f}" for request, tokens in points)


def chart(result: ReplayResult) -> Element:
    """Returns the chart as an SVG element. Its style comes from the classes of its parts."""
    sizes = [request.tokens for request in result.requests]
    grown = [request.history_tokens for request in result.requests]
    highest = max([1, *sizes, *(line.before_tokens for line in result.compactions)])
    room = max(highest, min(grown[-1] if grown else 0, _MOST_BUDGETS * result.budget), min(result.budget, 2 * highest))
    scale = _Scale(len(sizes), 1.04 * room)
    title = element("title", "Tokens of the history and of each request")
    drawn = element("svg", title, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")
    drawn.extend(_grid(scale, len(sizes)))
    labels: list[tuple[float, str, Sequence[str]]] = []
    if result.budget <= scale.most:
        drawn.append(element("path", d=f"M{_LEFT},{scale.y(result.budget):.1f}H{_RIGHT}", class_="budget"))
        labels.append((scale.y(result.budget), "budget", ("the budget,", f"{result.budget:,} tokens")))
    if sizes:
        history = [(at, min(tokens, scale.most)) for at, tokens in enumerate(grown, 1)]
        curve = scale.path(_served(result))
        drawn.append(element("path", d=scale.path(history), class_="history"))
        drawn.append(element("path", d=f"{curve}V{_BOTTOM}H{_LEFT}Z", class_="area"))
        drawn.append(element("path", d=curve, class_="requests"))
        drawn.extend(_dots(result, scale))
        top = scale.y(min(result.history_tokens, scale.most))
        words = ("the history,",) if grown[-1] <= scale.most else ("the history", "goes on, to")
        labels.append((top, "history", (*words, f"{result.history_tokens:,} tokens")))
        labels.append((scale.y(sizes[-1]), "requests", ("what the", "model gets")))
    drawn.extend(_labels(labels))
    return drawn


def _served(result: ReplayResult) -> Iterator[Point]:
    """Yields (request, tokens) for each request, and before it the size that a compaction has reduced."""
    due = {line.row: line.before_tokens for line in reversed(result.compactions)}
    for at, request in enumerate(result.requests, 1):
        if request.row in due:
            yield at, due[request.row]
        yield at, request.tokens


def _grid(scale: _Scale, requests: int) -> Iterator[Element]:
    for tokens in range(0, int(scale.most) + 1, _step(scale.most, 6)):
        y = scale.y(tokens)
        yield element("path", d=f"M{_LEFT},{y:.1f}H{_RIGHT}", class_="line")
        yield _text(_LEFT - 8, y + 4, f"{tokens / 1000:g}k" if tokens else "0", text_anchor="end")
    step = _step(requests, 8)
    for request in range(step, requests, step):
        yield _text(scale.x(request), _BOTTOM + 20, f"{request:,}", text_anchor="middle")
    yield _text(_RIGHT, _BOTTOM + 38, "requests of the session", text_anchor="end")


def _step(most: float, lines: int) -> int:
    """Returns the smallest 1, 2 or 5 times a power of ten that gives at most this many lines."""
    sizes = (int(factor * 10**power) for power in range(12) for factor in (1, 2, 5))
    return next(size for size in sizes if most / size <= lines)


def _dots(result: ReplayResult, scale: _Scale) -> Iterator[Element]:
    """Yields a link to each compaction."""
    requests = {request.row: at for at, request in enumerate(result.requests, 1)}
    for number, line in enumerate(result.compactions, 1):
        x, y = f"{scale.x(requests[line.row]):.1f}", f"{scale.y(line.after_tokens):.1f}"
        title = f"Compaction {number}: {line.before_tokens:,} → {line.after_tokens:,} tokens"
        yield element("a", element("circle", element("title", title), cx=x, cy=y, r="3"), href=f"#compaction-{number}")


def _labels(labels: Iterable[tuple[float, str, Sequence[str]]]) -> Iterator[Element]:
    """Yields the labels at the ends of the curves, moved down where they would overlap."""
    free = 0.0
    for wanted, kind, lines in sorted(labels):
        y = max(wanted, free)
        free = y + _LINE * len(lines) + 4
        for at, line in enumerate(lines):
            yield _text(_RIGHT + 8, y + 4 + _LINE * at, line, class_=f"label-{kind}")


def _text(x: float, y: float, words: str, **attributes: str) -> Element:
    return element("text", words, x=f"{x:.0f}", y=f"{y:.0f}", **attributes)


_ILLEGIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that no document may contain: control characters and lone surrogates."""


def element(tag: str, *children: Element | str, **attributes: str) -> Element:
    """Returns an element. Its texts are escaped when it is written, so that no text of a recording becomes markup.

    `class_` becomes `class`, and `stroke_width` becomes `stroke-width`.
    """
    made = Element(tag, {name.rstrip("_").replace("_", "-"): _legible(text) for name, text in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + _legible(child)
        else:
            made.text = (made.text or "") + _legible(child)
    return made


def _legible(text: str) -> str:
    return _ILLEGIBLE.sub("\ufffd", text)
