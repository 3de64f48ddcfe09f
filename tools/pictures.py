"""Draws the README's picture, light and dark: the chart of the page that `make demo` can write."""

from __future__ import annotations

import asyncio
from pathlib import Path
from xml.etree.ElementTree import tostring

from context_summarize.providers.offline import OfflineProvider
from context_summarize.replay import open_recording, replay
from context_summarize.replay.chart import HEIGHT, WIDTH, chart
from context_summarize.tokens.counter import TokenCounter

ROOT = Path(__file__).parents[1]
STYLE = """
path { fill: none; stroke-linejoin: round }
text { fill: QUIET; font: 13px sans-serif }
.paper { fill: PAPER } .line { stroke: LINE } .budget { stroke: QUIET; stroke-dasharray: 4 4 }
.history { stroke: VIOLET; stroke-width: 2 } .requests { stroke: BLUE; stroke-width: 2 }
.area { fill: BLUE; opacity: 0.12 } circle { fill: BLUE; stroke: PAPER }
.label-history { fill: VIOLET } .label-requests { fill: BLUE }
"""
COLOURS = {
    "light": {"PAPER": "#fcfcfb", "QUIET": "#5b646e", "LINE": "#dfe2e5", "BLUE": "#1c66b8", "VIOLET": "#7a4fb5"},
    "dark": {"PAPER": "#14171a", "QUIET": "#9aa4ae", "LINE": "#2f363d", "BLUE": "#6cb0f5", "VIOLET": "#bb97ee"},
}


def main() -> None:
    """Replays the recording as `make demo` does, and draws its chart in each scheme."""
    rows = open_recording(str(ROOT / "examples" / "airline-desk.jsonl")).rows
    provider = OfflineProvider(TokenCounter().count, context_window=40_000, max_output_tokens=4_000)
    drawn = chart(asyncio.run(replay(rows, provider)))
    for link in drawn.iter("a"):
        del link.attrib["href"]  # the link leads to a part of the page
    inside = "\n".join(tostring(part, encoding="unicode") for part in drawn)
    for scheme, colours in COLOURS.items():
        style = STYLE
        for name, colour in colours.items():
            style = style.replace(name, colour)
        size = f'viewBox="{drawn.get("viewBox")}" width="{WIDTH}" height="{HEIGHT}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>'
        page = f'{head}\n<rect class="paper" width="100%" height="100%"/>\n{inside}\n</svg>\n'
        (ROOT / "docs" / "images" / f"demo-{scheme}.svg").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
