"""The pictures of the report: views over the session, facts against price, waiting. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.field.contestants import entries, profiles
from benchmarks.field.grid import MAIN, Grid

GREY = "#808890"
"""Readable on white and on black, as the colours below."""
KINDS = {"ours": "context-summarize", "peer": "peers as they come", "tuned": "peers, tuned", "plain": "no summaries"}
COLOURS = {"ours": "#2f81f7", "peer": "#d1742f", "tuned": "#9a6dd7", "plain": GREY}


def draw(grid: Grid, folder: Path) -> list[str]:
    """Write the pictures; their file names.

    Raises:
        ImportError: matplotlib is not installed.
    """
    plot = plotting()
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"views.svg": _views, "frontier.svg": _frontier, "waiting.svg": _waiting}
    for name, picture in pictures.items():
        figure = picture(plot, grid)
        figure.savefig(folder / name, transparent=True, metadata={"Date": None}, bbox_inches="tight")
        plot.close(figure)
    return list(pictures)


def plotting() -> Any:
    """pyplot with this report's colours.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import_module("matplotlib").use("agg")  # it measures texts, and saves SVG all the same
    plot = import_module("matplotlib.pyplot")
    greys = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
    plot.rcParams.update(dict.fromkeys(greys, GREY))
    plot.rcParams.update({"svg.hashsalt": "context-summarize", "svg.fonttype": "none", "font.family": "sans-serif"})
    plot.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "grid.color": GREY, "grid.alpha": 0.25})
    return plot


def _shown(grid: Grid) -> list[str]:
    """Everyone, of this module its profiles only."""
    return [name for name in grid.names() if entries()[name].kind != "ours" or name in profiles()]


def _views(plot: Any, grid: Grid) -> Any:
    names = _shown(grid)
    columns = 3
    lines = -(-len(names) // columns)
    figure, axes = plot.subplots(lines, columns, figsize=(10, 1.6 * lines), sharex=True, sharey=True, squeeze=False)
    ceiling = 1.6 * max(view for _, view in grid.of(names[0])[0].series)
    for at, axis in enumerate(axes.flat):
        if at >= len(names):
            axis.set_axis_off()
            continue
        entry = entries()[names[at]]
        series = grid.of(names[at])[0].series
        axis.plot(
            [fed / 1000 for fed, _ in series], [view / 1000 for _, view in series], color=COLOURS[entry.kind], lw=1
        )
        axis.set_title(names[at], fontsize=9)
        axis.set_ylim(0, ceiling / 1000)
        axis.grid(True)
    figure.supxlabel("tokens of the session so far, thousands", fontsize=9)
    figure.supylabel("tokens of the view, thousands", fontsize=9)
    figure.tight_layout()
    return figure


def _frontier(plot: Any, grid: Grid) -> Any:
    figure, axis = plot.subplots(figsize=(10, 6))
    found = {name: (grid.mean(name, "price") / 1e6, grid.mean(name, "facts_end") * 100) for name in grid.names()}
    for kind, colour in COLOURS.items():
        points = [found[name] for name in found if entries()[name].kind == kind]
        axis.scatter(*zip(*points, strict=True), color=colour, s=36, zorder=3, label=KINDS[kind]) if points else None
    line = _staircase([point for name, point in found.items() if entries()[name].kind == "ours"])
    axis.plot(*zip(*line, strict=True), color=COLOURS["ours"], lw=1, alpha=0.6) if line else None
    axis.set_xlabel("price of the session, million input tokens")
    axis.set_ylabel("facts in the last view, %")
    axis.set_ylim(0, 105)
    axis.margins(x=0.15)
    axis.grid(True)
    axis.legend(frameon=False, loc="lower right")
    label(figure, axis, found)
    return figure


def _staircase(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that none of the cheaper ones reaches."""
    line: list[tuple[float, float]] = []
    for price, facts in sorted(points):
        if not line or facts > line[-1][1]:
            line.append((price, facts))
    return line


def label(figure: Any, axis: Any, points: Mapping[str, tuple[float, float]]) -> None:
    """Names beside their points, where they cover no other name if there is such a place."""
    taken: list[Any] = []
    for name, point in sorted(points.items(), key=lambda item: item[1]):
        for right, up in ((7, -3), (-7, -3), (7, 7), (-7, 7), (7, -13), (-7, -13), (7, 17), (-7, 17), (7, -23)):
            side = "left" if right > 0 else "right"
            offset = {"xytext": (right, up), "textcoords": "offset points", "ha": side}
            text = axis.annotate(name, point, fontsize=8, **offset)
            box = text.get_window_extent(figure.canvas.get_renderer())
            if not any(box.overlaps(other) for other in taken):
                break
            text.remove()
        else:
            text = axis.annotate(name, point, fontsize=8, xytext=(7, -3), textcoords="offset points")
        taken.append(text.get_window_extent(figure.canvas.get_renderer()))


def _waiting(plot: Any, grid: Grid) -> Any:
    names = _shown(grid)[::-1]
    figure, axis = plot.subplots(figsize=(9, 0.34 * len(names) + 0.8))
    shares = [grid.mean(name, "waited") * 100 for name in names]
    bars = axis.barh(names, shares, color=[COLOURS[entries()[name].kind] for name in names])
    worst = [max(one.waited_worst for one in grid.of(name, MAIN)) for name in names]
    labels = [f"{share:.1f} %, at worst {most:.0f} s" for share, most in zip(shares, worst, strict=True)]
    axis.bar_label(bars, labels, padding=4, fontsize=8)
    axis.set_xlabel("waiting for summaries, % of the model's own latency")
    axis.margins(x=0.3)
    axis.grid(True, axis="x")
    return figure
