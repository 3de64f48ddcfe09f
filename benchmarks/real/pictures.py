"""The pictures of the report, readable on white and on black. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.field.contestants import entries
from benchmarks.field.pictures import COLOURS, GREY, KINDS, label, plotting
from benchmarks.real.figures import OURS, Figures
from benchmarks.real.tables import price


def draw(found: Figures, folder: Path) -> list[str]:
    """Write the pictures; their file names.

    Raises:
        ImportError: matplotlib is not installed.
    """
    plot = plotting()
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"real-near.svg": _near(plot, found), "real-price.svg": _price(plot, found)}
    for name, figure in pictures.items():
        figure.savefig(folder / name, transparent=True, metadata={"Date": None}, bbox_inches="tight")
        plot.close(figure)
    return list(pictures)


def _near(plot: Any, found: Figures) -> Any:
    """A panel a data set: share of the questions with a gold value near, and the tail of equal size as a line."""
    sets = found.sets()
    columns = min(3, len(sets))
    lines = -(-len(sets) // columns)
    most = max(len(found.complete(name)) for name in sets)
    figure, axes = plot.subplots(lines, columns, figsize=(11, lines * (0.24 * most + 0.9)), squeeze=False)
    for at, axis in enumerate(axes.flat):
        if at >= len(sets):
            axis.set_axis_off()
            continue
        name, names = sets[at], found.complete(sets[at])[::-1]
        asked = max(1, found.asked(name)[0])
        bars = [100 * found.of(name, one).view.near / asked for one in names]
        axis.barh(names, bars, color=[COLOURS[entries()[one].kind] for one in names])
        if OURS in names:
            axis.axvline(100 * found.of(name, OURS).tail.near / asked, color=GREY, lw=1.2, ls="--")
        axis.set_title(name, fontsize=9)
        axis.set_xlim(0, 100)
        axis.tick_params(axis="y", labelsize=7)
        axis.grid(True, axis="x")
    figure.supxlabel("questions with a gold value near, %; dashed: newest messages of the size of our view", fontsize=9)
    figure.tight_layout()
    return figure


def _price(plot: Any, found: Figures) -> Any:
    """Price against questions with a gold value near, on the first data set."""
    name = found.sets()[0]
    figure, axis = plot.subplots(figsize=(10, 5.5))
    asked = max(1, found.asked(name)[0])
    points = {}
    for one in found.complete(name):
        of = found.of(name, one)
        points[one] = (price(of), 100 * of.view.near / asked)
    for kind, colour in COLOURS.items():
        shown = [points[one] for one in points if entries()[one].kind == kind]
        axis.scatter(*zip(*shown, strict=True), color=colour, s=36, zorder=3, label=KINDS[kind]) if shown else None
    axis.set_xlabel(f"price, input tokens for each token of the session ({name})")
    axis.set_ylabel("questions with a gold value near, %")
    axis.set_ylim(0, 105)
    axis.margins(x=0.15)
    axis.grid(True)
    axis.legend(frameon=False, loc="upper left")
    label(figure, axis, points)
    return figure
