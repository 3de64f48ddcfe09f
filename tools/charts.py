"""Draws the picture of docs/benchmarks.md, light and dark, from docs/benchmarks.json; it needs matplotlib."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {"Ours": "this module", "OursVerbatim": "this module, more verbatim"}
NAMES |= {"LangChainWhole": "LangChain", "Hermes": "Hermes", "StrandsMost": "Strands"}
OTHERS = {"OursFrugal": "this module, frugal", "PydanticAIWhole": "PydanticAI", "AgentFrameworkWhole": "AgentFramework"}
POINTS = {"Ours": "o", "OursFrugal": "s", "OursVerbatim": "D", "LangChainWhole": "^", "Hermes": "v", "StrandsMost": "<"}
POINTS |= {"PydanticAIWhole": ">", "AgentFrameworkWhole": "P"}
COLOURS = {
    "light": {"paper": "#fcfcfb", "quiet": "#5b646e", "line": "#dfe2e5"}
    | {"Ours": "#1c66b8", "LangChainWhole": "#b3541e", "Hermes": "#2e7d4f", "StrandsMost": "#7a4fb5"},
    "dark": {"paper": "#14171a", "quiet": "#9aa4ae", "line": "#2f363d"}
    | {"Ours": "#6cb0f5", "LangChainWhole": "#e8935c", "Hermes": "#6cc495", "StrandsMost": "#bb97ee"},
}
Figures = dict[str, Any]


def style(colours: dict[str, str]) -> Any:
    """Returns settings of matplotlib: texts stay texts, and the same figures give the same file."""
    parts = {"text.color": "quiet", "axes.labelcolor": "quiet", "xtick.color": "quiet", "ytick.color": "quiet"}
    parts |= {"axes.edgecolor": "line", "grid.color": "line", "axes.facecolor": "paper", "figure.facecolor": "paper"}
    fixed: Figures = {"svg.fonttype": "none", "svg.hashsalt": "charts", "font.sans-serif": ["DejaVu Sans"]}
    shape = {"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "legend.frameon": False}
    return fixed | shape | {name: colours[colour] for name, colour in parts.items()}


def price(halves: dict[str, list[Figures]], colours: dict[str, str]) -> Figure:
    """Draws cost against the share of the values that later calls name: a point for each library and setting."""
    figure, axes = plt.subplots(1, len(halves), figsize=(9, 3.5), sharey=True, layout="constrained")
    for axis, (half, lines) in zip(axes, halves.items(), strict=True):
        told = {one["contestant"]: one for one in lines if one.get("text") == "view" and one["window"] == "40k"}
        for who, sign in POINTS.items():
            colour = colours.get(who, colours["Ours"] if who.startswith("Ours") else colours["quiet"])
            mark: Figures = {"marker": sign, "color": colour, "mec": colours["paper"], "ms": 9, "clip_on": False}
            name = NAMES.get(who) or OTHERS[who]
            axis.plot(told[who]["dollars_sol"], told[who]["of_events"], linestyle="", label=name, **mark)
        most = max(one["dollars_sol"] for one in told.values())
        title = f"{half.capitalize()}: {told['Ours']['events']} names, {told['Ours']['sessions']} sessions"
        axis.set(title=title, xlabel="dollars", xlim=(0, 1.1 * most), ylim=(0, 1))
    return _finish(figure)


def _finish(figure: Figure) -> Figure:
    """Labels the axis of shares, draws lines at its quarters, and adds one legend."""
    for axis in figure.axes:
        axis.set(yticks=(0, 0.25, 0.5, 0.75, 1))
        axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        axis.tick_params(length=0)
        axis.grid(axis="y")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    told = dict(zip(labels, handles, strict=True))
    columns = len(told) if len(told) < 6 else 4
    figure.legend(told.values(), told.keys(), loc="outside upper center", ncols=columns, handlelength=2.5)
    return figure


def main() -> None:
    """Draws it in both schemes."""
    found = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
    cuts = {"open": found["cuts"]["figures"], "sealed": found["cuts sealed"]["figures"]}
    for scheme, colours in COLOURS.items():
        with plt.rc_context(style(colours)):
            name = DOCS / "images" / f"price-{scheme}.svg"
            price(cuts, colours).savefig(name, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
