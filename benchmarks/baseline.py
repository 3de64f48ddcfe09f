"""`python -m benchmarks.baseline FILE`: the figures that later versions are compared with, and how they compare.

Parts are measured one by one and written into FILE, which keeps the others. The package that is measured is the first
`context_summarize` on PYTHONPATH, whose commit is noted; these benchmarks may come from another checkout behind it.
With `--ours` no other library plays. Figures that differ from `benchmarks/baseline.json` are printed beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import context_summarize
from benchmarks import field
from benchmarks.peers import OURS, PEERS
from benchmarks.report import Figures, run_all, table
from benchmarks.summarisers import FAULTS

KEPT = Path(__file__).with_name("baseline.json")
CHECKOUT = Path(context_summarize.__file__).parents[1]
SIZES = (8, 16, 40, 200)
HOWS = ("keeps-95", "keeps-80")
HALF = 0.5
"""Share of the facts from which on a price is worth comparing: a view that holds next to nothing is always cheap."""
DIFFERS = 0.01
"""Share by which a figure differs that is printed."""
_KEYS = ("facts", "price", "cached", "waiting", "worst_wait", "view_mean", "ids", "lost", "over_budget", "broken")


def in_field(jobs: int, peers: bool) -> Figures:
    """Facts, price and waiting at each window: ours with two seeds, and the other libraries."""
    found: Figures = {}
    ours = [one.__name__ for one in OURS]
    for size in SIZES:
        others = [one.__name__ for one in PEERS if peers]
        if size == SIZES[-1]:  # there, this library takes seconds for a request
            others = [one for one in others if not one.startswith("AgentFramework")]
        less = [one for one in others if one in ("LangChainWhole", "PydanticAIWhole")]
        name = f"field-{size}k"
        wanted = [(name, HOWS[0], one) for one in (*ours, *others)] + [(name, HOWS[1], one) for one in (*ours, *less)]
        wanted += [(f"{name}-again", how, "Ours") for how in HOWS]
        of_size = run_all(field.cell, wanted, jobs)
        found[name] = {how: _by_name([one for one in of_size if one.get("summariser") == how]) for how in HOWS}
        found[name]["missing"] = [f"{one['cell']}: {one['missing']}" for one in of_size if "missing" in one]
    return found


def _by_name(found: list[Figures]) -> Figures:
    """The mean over the seeds of each contestant, and ours beside the best of the others."""
    names = dict.fromkeys(one["contestant"] for one in found)
    cells = {name: [one for one in found if one["contestant"] == name] for name in names}
    told = {name: {key: fmean(one[key] for one in played) for key in _KEYS} for name, played in cells.items()}
    others = {name: one for name, one in told.items() if name in {peer.__name__ for peer in PEERS}}
    fair = {name: one["price"] for name, one in others.items() if one["facts"] >= HALF and not one["lost"]}
    if fair:
        least = min(fair, key=lambda name: fair[name])
        told["price_over_cheapest_with_half"] = {"library": least, "ratio": told["Ours"]["price"] / fair[least]}
    if others:
        least = min(others, key=lambda name: others[name]["waiting"])
        told["waiting_of_best"] = {"library": least, "waiting": others[least]["waiting"]}
    return told


def others(jobs: int, peers: bool) -> Figures:
    """Ours in other sessions: failing summarisers at a window of 8,000, and what a user typed beside long results."""
    del peers
    wanted = [("field-8k", how, "Ours") for how in FAULTS]
    wanted += [("invoices", "extracts", "Ours"), ("airline", "extracts", "Ours"), ("file-reader", "keeps-95", "Ours")]
    found = run_all(field.cell, wanted, jobs)
    keys = (*_KEYS, "ids_of_session", "calls", "requests")
    return {f"{one['session']} {one['summariser']}": {key: one[key] for key in keys if key in one} for one in found}


def _of(module: str) -> Callable[[int, bool], Figures]:
    """The part of another benchmark: its function `baseline`."""
    return lambda jobs, peers: import_module(f"benchmarks.{module}").baseline(jobs, peers)  # type: ignore[no-any-return]


PARTS: Mapping[str, Callable[[int, bool], Figures]] = {
    "field": in_field,
    "others": others,
    "speed": _of("speed"),
    "trace": _of("trace"),
    "real": _of("real.conversations"),
    "prospective": _of("prospective"),
}


def rounded(value: Any) -> Any:
    """Figures with four significant digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def differences(before: Figures, now: Figures) -> list[Figures]:
    """Numbers of both that differ by more than `DIFFERS`, one a line."""
    old, new = dict(_leaves("", before)), dict(_leaves("", now))
    pairs = [(name, old[name], new[name]) for name in new if name in old]
    differ = [pair for pair in pairs if abs(pair[2] - pair[1]) > DIFFERS * abs(pair[1])]
    return [{"figure": name, "baseline": one, "now": other, "ratio": other / (one or 1)} for name, one, other in differ]


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(f"{name} {key}".strip(), one)
    elif isinstance(value, int | float):
        yield name, value


def main() -> int:
    """Measure, write the file after each part, compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--ours", action="store_true", help="without other libraries")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    given = parser.parse_args()
    asked = ["git", "-C", str(CHECKOUT), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    for part in given.parts:
        found = rounded(PARTS[part](given.jobs, not given.ours))
        kept = json.loads(given.file.read_text("utf-8")) if given.file.exists() else {}
        given.file.write_text(json.dumps({**kept, "commit": commit, part: found}, indent=1) + "\n", "utf-8")
        before = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
        differ = differences({part: before.get(part, {})}, {part: found})
        print(f"{part} of {commit[:7]}\n{table(differ, ('figure', 'baseline', 'now', 'ratio'))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
