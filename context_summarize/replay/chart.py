"""The chart of a replay as SVG, with tokens over requests; and `element`, which builds markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from xml.etree.ElementTree import Element

from context_summarize.replay.result import ReplayResult

WIDTH, HEIGHT = 880, 320
_LEFT, _RIGHT, _BOTTOM = 46, 764, 286
"""Pixels of the picture around which the curves are drawn: the figures, the legend, the count of requests."""
_MOST_BUDGETS = 4
"""The chart is at most this many budgets high; what is above it leaves it at the top."""


def chart(result: ReplayResult) -> Element:
    """Returns the chart as an SVG element. Its style comes from the classes of its parts."""
    most = 1.04 * max(1, result.largest_view, min(result.history_tokens, _MOST_BUDGETS * result.budget))
    step = (_RIGHT - _LEFT) / max(1, len(result.requests) - 1)
    places = {request.row: _LEFT + at * step for at, request in enumerate(result.requests)}

    def y(tokens: int) -> float:
        return _BOTTOM * (1 - tokens / most)

    def curve(points: Iterable[tuple[float, int]]) -> str:
        return "L".join(f"{x:.1f},{y(tokens):.1f}" for x, tokens in points)

    title = element("title", "Tokens of the history and of each request")
    drawn = element("svg", title, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")
    for tokens in range(0, int(most) + 1, _step(most)):
        drawn.append(element("path", d=f"M{_LEFT},{y(tokens):.1f}H{_RIGHT}", class_="line"))
        drawn.append(_text(_LEFT - 8, y(tokens) + 4, f"{tokens / 1000:g}k", text_anchor="end"))
    for at in range(1, 5) if places else ():
        number = at * (len(result.requests) - 1) // 4
        drawn.append(_text(_LEFT + number * step, _BOTTOM + 22, f"{number + 1:,}", text_anchor="middle"))
    drawn.append(_text(2, _BOTTOM + 22, "tokens"))
    drawn.append(_text(_RIGHT + 24, _BOTTOM + 22, "requests"))
    drawn.append(element("path", d=f"M{_LEFT},{y(result.budget):.1f}H{_RIGHT}", class_="budget"))
    if places:
        history = curve((places[request.row], request.history_tokens) for request in result.requests)
        sizes = curve((places[request.row], request.tokens) for request in result.requests)
        drawn.append(element("path", d=f"M{history}", class_="history"))
        drawn.append(element("path", d=f"M{_LEFT},{_BOTTOM}L{sizes}V{_BOTTOM}Z", class_="area"))
        drawn.append(element("path", d=f"M{sizes}", class_="requests"))
    for number, line in enumerate(result.compactions, 1):
        title = element("title", f"Compaction {number}: {line.before:,} → {line.after:,} tokens")
        dot = element("circle", title, cx=f"{places[line.row]:.1f}", cy=f"{y(line.after):.1f}", r="3")
        drawn.append(element("a", dot, href=f"#compaction-{number}"))
    drawn.extend(_labels(result, y))
    return drawn


def _labels(result: ReplayResult, y: Callable[[int], float]) -> Iterator[Element]:
    """Yields a label at the end of each line, and below the label above it."""
    last = result.requests[-1].tokens if result.requests else 0
    labels = [
        (result.history_tokens, "history", "the history", result.history_tokens),
        (result.budget, "budget", "the budget", result.budget),
        (last, "requests", "requests, up to", result.largest_view),
    ]
    lowest = 14.0
    for end, kind, about, tokens in sorted(labels, reverse=True):
        lowest = max(lowest, y(end) - 4)
        for line, words in enumerate((about, f"{tokens:,} tokens")):
            yield _text(_RIGHT + 8, lowest + 16 * line, words, class_=f"label-{kind}")
        lowest += 36


def _step(most: float) -> int:
    """Returns the smallest 1, 2 or 5 times a power of ten that gives at most six lines."""
    sizes = (factor * int(10**power) for power in range(12) for factor in (1, 2, 5))
    return next(size for size in sizes if most / size <= 6)


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
