"""Draws the README's picture, light and dark, from the report that `make demo` can write, read in headless Chromium."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for the driver of the browser, which the tests share

from context_summarize.replay.session_files import read_session  # noqa: E402 - found by the line above
from context_summarize.tokens.counter import TokenCounter  # noqa: E402
from context_summarize.tokens.measure import measure  # noqa: E402
from tests.support.browser import Browser, find_chromium  # noqa: E402

RECORDING = ROOT / "examples" / "airline-desk.jsonl"
IMAGES = ROOT / "docs" / "images"
SCHEMES = ("light", "dark")
COLOURS = ("paper", "quiet", "line", "blue", "violet")
WIDTH, HEIGHT = 880, 330
LEFT, RIGHT, TOP, BOTTOM = 46, 764, 16, 286
"""Pixels of the whole picture, and of the chart in it."""

_READ = """(() => {
  const style = getComputedStyle(document.documentElement);
  const colours = NAMES.map((name) => [name, style.getPropertyValue("--" + name)]);
  return { data: JSON.parse(document.getElementById("data").textContent), colours: Object.fromEntries(colours) };
})()"""

Point = tuple[float, float]


def growth(recording: Path) -> list[int]:
    """Tokens of the history after each row of a recording."""
    counter = TokenCounter()
    return list(accumulate(measure(row, counter.count) for row in read_session(recording)))


def sent(data: Mapping[str, Any]) -> Iterator[Point]:
    """(request, tokens): each request that was sent, and before a compaction the request that was due."""
    compacted = {line["request"]: line for line in data["compactions"]}
    for request, _, tokens, *_ in data["requests"]:
        if request in compacted:
            yield request, compacted[request]["before_tokens"]
        yield request, tokens


class Drawing:
    """An SVG of sizes over the requests of a session, up to `most` tokens and `last` requests."""

    def __init__(self, most: float, last: int, colours: Mapping[str, str]) -> None:
        self._most, self._last, self._colours = most, last, colours
        self._parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{colours["paper"]}"/>']

    def x(self, request: float) -> float:
        """Pixels from the left of a request, counted from 1."""
        return LEFT + (request - 1) / (self._last - 1) * (RIGHT - LEFT)

    def y(self, tokens: float) -> float:
        """Pixels from the top of a size."""
        return BOTTOM - tokens / self._most * (BOTTOM - TOP)

    def text(self, x: float, y: float, words: str, colour: str = "quiet", anchor: str = "start") -> None:
        """A line of text."""
        fill = self._colours[colour]
        self._parts.append(f'<text x="{x:.0f}" y="{y:.0f}" fill="{fill}" text-anchor="{anchor}">{words}</text>')

    def level(self, tokens: float, colour: str, style: str = "") -> None:
        """A line across the chart."""
        path = f"M{LEFT},{self.y(tokens):.1f}H{RIGHT}"
        self._parts.append(f'<path d="{path}" stroke="{self._colours[colour]}"{style}/>')

    def curve(self, points: Iterable[Point], colour: str, *, filled: bool = False) -> None:
        """A curve through the points, with the area under it if it is filled."""
        path = "M" + "L".join(f"{self.x(request):.1f},{self.y(tokens):.1f}" for request, tokens in points)
        fill = self._colours[colour]
        if filled:
            self._parts.append(f'<path d="{path}V{BOTTOM}H{LEFT}Z" fill="{fill}" opacity="0.12"/>')
        self._parts.append(f'<path d="{path}" fill="none" stroke="{fill}" stroke-width="2" stroke-linejoin="round"/>')

    def svg(self) -> str:
        """The whole file."""
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
        return "\n".join([head, *self._parts, "</svg>", ""])


def drawn(data: Mapping[str, Any], history: list[int], colours: Mapping[str, str]) -> str:
    """The picture as SVG: the history, the requests, the budget."""
    requests, budget = data["requests"], data["budget"]
    drawing = Drawing(history[-1] * 1.04, len(requests), colours)
    for tokens in range(0, history[-1], 20_000):
        drawing.level(tokens, "line")
        drawing.text(LEFT - 8, drawing.y(tokens) + 4, f"{tokens // 1000}k" if tokens else "0", anchor="end")
    for request in range(100, len(requests), 100):
        drawing.text(drawing.x(request), BOTTOM + 20, str(request), anchor="middle")
    drawing.text(RIGHT, BOTTOM + 38, "requests of the session", anchor="end")
    drawing.level(budget, "quiet", ' stroke-dasharray="4 4"')
    grown = [
        (request, history[max(message - 2, 0)]) for request, message, *_ in requests
    ]  # the answer is not in it yet
    drawing.curve([*grown[::4], grown[-1]], "violet")
    drawing.curve(sent(data), "blue", filled=True)
    for tokens, colour, *lines in (
        (history[-1], "violet", "the history,", f"{history[-1]:,} tokens"),
        (budget, "quiet", "the budget,", f"{budget:,} tokens"),
        (requests[-1][2], "blue", "what the", "model gets"),
    ):
        for at, line in enumerate(lines):
            drawing.text(RIGHT + 8, drawing.y(tokens) + 4 + 15 * at, line, colour)
    return drawing.svg()


def draw(chromium: str, report: Path) -> None:
    """Write both pictures from a report of the recording."""
    history = growth(RECORDING)
    IMAGES.mkdir(exist_ok=True)
    with Browser(chromium) as browser:
        for scheme in SCHEMES:
            page = browser.open(report, dark=scheme == "dark")
            told = page.evaluate(_READ.replace("NAMES", str(list(COLOURS))))
            (IMAGES / f"demo-{scheme}.svg").write_text(drawn(told["data"], history, told["colours"]), "utf-8")


def main() -> None:
    """Replay the recording as `make demo` does, and draw what its report holds."""
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("Chromium is needed to read the report, and none is on the path: install it first")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        replay = [sys.executable, "-c", "from context_summarize.cli import main; main()", "replay", str(RECORDING)]
        subprocess.run([*replay, "--html", str(report)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        draw(chromium, report)


if __name__ == "__main__":
    main()
