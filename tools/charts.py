"""Draws the pictures of docs/benchmarks.md, light and dark, from docs/benchmarks.json; it needs matplotlib."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {"Ours": "this module", "OursVerbatim": "this module, more verbatim"}
NAMES |= {"LangChainWhole": "LangChain", "Hermes": "Hermes", "StrandsMost": "Strands", "rows": "newest rows alone"}
OTHERS = {"OursFrugal": "this module, frugal", "PydanticAIWhole": "PydanticAI", "AgentFrameworkWhole": "AgentFramework"}
LINES = {"Ours": "-", "LangChainWhole": "--", "Hermes": "-.", "StrandsMost": ":"}
POINTS = {"Ours": "o", "OursFrugal": "s", "OursVerbatim": "D", "LangChainWhole": "^", "Hermes": "v", "StrandsMost": "<"}
POINTS |= {"PydanticAIWhole": ">", "AgentFrameworkWhole": "P"}
KINDS = {"instruction": "Instructions", "request": "Requests", "file": "Files", "value": "Values"}
WINDOWS = {"40k": "Window of 40,000 tokens", "200k": "Window of 200,000 tokens"}
COLOURS = {
    "light": {"paper": "#fcfcfb", "quiet": "#5b646e", "line": "#dfe2e5", "open": "#a9c8ea", "sealed": "#1c66b8"}
    | {"Ours": "#1c66b8", "LangChainWhole": "#b3541e", "Hermes": "#2e7d4f", "StrandsMost": "#7a4fb5"},
    "dark": {"paper": "#14171a", "quiet": "#9aa4ae", "line": "#2f363d", "open": "#35577c", "sealed": "#6cb0f5"}
    | {"Ours": "#6cb0f5", "LangChainWhole": "#e8935c", "Hermes": "#6cc495", "StrandsMost": "#bb97ee"},
}
HALVES = ("prospective", "cuts")
"""Parts of the figures with both halves of the data."""
Figures = dict[str, Any]


def style(colours: dict[str, str]) -> Any:
    """Returns settings of matplotlib: texts stay texts, and the same figures give the same file."""
    parts = {"text.color": "quiet", "axes.labelcolor": "quiet", "xtick.color": "quiet", "ytick.color": "quiet"}
    parts |= {"axes.edgecolor": "line", "grid.color": "line", "axes.facecolor": "paper", "figure.facecolor": "paper"}
    fixed: Figures = {"svg.fonttype": "none", "svg.hashsalt": "charts", "font.sans-serif": ["DejaVu Sans"]}
    shape = {"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "legend.frameon": False}
    return fixed | shape | {name: colours[colour] for name, colour in parts.items()}


def survival(lines: list[Figures], colours: dict[str, str]) -> Figure:
    """Draws the share of each kind that is left after each compaction: the mean of the seeds, and their range."""
    figure, axes = plt.subplots(1, len(KINDS), figsize=(9, 2.9), sharey=True, layout="constrained")
    for axis, (kind, title) in zip(axes, KINDS.items(), strict=True):
        for line in (one for one in lines if one.get("kind") == kind and one["contestant"] in LINES):
            who = line["contestant"]
            mean, low, high = zip(*line["curve"], strict=True)
            times = range(1, len(mean) + 1)
            axis.fill_between(times, low, high, color=colours[who], alpha=0.18, linewidth=0)
            axis.plot(times, mean, LINES[who], color=colours[who], linewidth=2, label=NAMES[who])
        axis.set(title=title, xlabel="compactions", xlim=(0.5, 10.5), ylim=(-0.02, 1.02), xticks=(1, 5, 10))
    return _finish(figure, "y")


def prospective(halves: dict[str, list[Figures]], colours: dict[str, str]) -> Figure:
    """Draws the share of the values that the next calls need, as bars by window, contestant and half of the data."""
    figure, axes = plt.subplots(1, len(WINDOWS), figsize=(9, 3.5), sharey=True, layout="constrained")
    for axis, (window, title) in zip(axes, WINDOWS.items(), strict=True):
        for number, (half, lines) in enumerate(halves.items()):
            shown = ("histories", window, "extracts")
            wanted = [one for one in lines if (one.get("set"), one.get("window"), one.get("summariser")) == shown]
            _bars(axis, {one["contestant"]: one for one in wanted if one["events"]}, 0.4 * number, half, colours)
        axis.set(title=title, xlim=(0, 1.36), ylim=(len(NAMES) - 0.3, -0.3))
        axis.set_yticks([at + 0.2 for at in range(len(NAMES))], NAMES.values())
    return _finish(figure, "x")


def _bars(axis: Axes, told: dict[str, Figures], lower: float, half: str, colours: dict[str, str]) -> None:
    """Draws one half of the data: a bar for each contestant with its control, and one for the newest rows alone."""
    if ours := told.get("Ours"):
        told = told | {"rows": {"held": ours["tail"], "events": ours["events"]}}
    for place, line in [(at + lower, told[who]) for at, who in enumerate(NAMES) if who in told]:
        share, control = line["held"] / line["events"], line.get("control")
        axis.barh(place, share, 0.36, color=colours[half], label=half)
        if control is not None:
            mark: Figures = {"c": colours["paper"], "mec": colours["quiet"], "ms": 5, "clip_on": False}
            axis.plot(control, place, "D", label="control: not used again", **mark)
        told_share = f"{100 * share:.0f} % of {line['events']}"
        axis.text(1.04, place, told_share, fontsize=9, va="center")


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
    return _finish(figure, "y")


def _finish(figure: Figure, shares: Any) -> Figure:
    """Labels the axis of shares, draws lines at its quarters, and adds one legend."""
    for axis in figure.axes:
        axis.set(**{f"{shares}ticks": (0, 0.25, 0.5, 0.75, 1)})
        getattr(axis, f"{shares}axis").set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        axis.tick_params(length=0)
        axis.grid(axis=shares)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    told = dict(zip(labels, handles, strict=True))
    columns = len(told) if len(told) < 6 else 4
    figure.legend(told.values(), told.keys(), loc="outside upper center", ncols=columns, handlelength=2.5)
    return figure


def main() -> None:
    """Draws each picture whose figures are there."""
    found = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
    parts = {name: {"open": found[name]["figures"], "sealed": found[f"{name} sealed"]["figures"]} for name in HALVES}
    for scheme, colours in COLOURS.items():
        with plt.rc_context(style(colours)):
            drawn = {"survival": survival(found["survival"]["figures"], colours)}
            drawn |= {"prospective": prospective(parts["prospective"], colours), "price": price(parts["cuts"], colours)}
            for name, figure in drawn.items():
                figure.savefig(DOCS / "images" / f"{name}-{scheme}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
