"""`python -m benchmarks.baseline FILE`: the figures that later versions are compared with.

Parts are measured one by one and written into FILE, which keeps the others. The package that is measured is the first
`context_summarize` on PYTHONPATH, whose commit is noted; these benchmarks may come from another checkout behind it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

import context_summarize
from benchmarks import field
from benchmarks.peers import EVERYONE, PEERS
from benchmarks.report import Figures, run_all
from benchmarks.summarisers import FAULTS

CHECKOUT = Path(context_summarize.__file__).parents[1]
SIZES = (8, 16, 40, 200)
OURS = ("Ours", "OursLean", "OursFrugal")
HALF = 0.5
"""Share of the facts from which on a price is worth comparing: a view that holds next to nothing is always cheap."""
_KEPT = ("facts", "price", "cached", "waiting", "worst_wait", "view_mean", "ids", "lost", "over_budget", "broken")


def in_field(jobs: int) -> Figures:
    """Facts, price and waiting at each window: ours with two seeds, and the other libraries."""
    found: Figures = {}
    slow = {name for name in EVERYONE if name.startswith("AgentFramework")}
    for size in SIZES:
        names = [one.__name__ for one in PEERS if size < SIZES[-1] or one.__name__ not in slow]
        name = f"field-{size}k"
        wanted = [(name, "keeps-95", one) for one in (*OURS, "KeepLast", *names)]
        wanted += [(name, "keeps-80", one) for one in (*OURS, "LangChainWhole", "PydanticAIWhole")]
        wanted += [(f"{name}-again", how, "Ours") for how in ("keeps-95", "keeps-80")]
        of_size = run_all(field.cell, wanted, jobs)
        found[name] = {how: _by_name(one for one in of_size if one.get("summariser") == how) for how in _HOWS}
        for how in _HOWS:
            _compare(found[name][how])
        found[name]["missing"] = [f"{one['cell']}: {one['missing']}" for one in of_size if "missing" in one]
    return found


_HOWS = ("keeps-95", "keeps-80")


def _by_name(found: Any) -> Figures:
    """The mean over the seeds of each contestant."""
    cells: dict[str, list[Figures]] = {}
    for one in found:
        cells.setdefault(one["contestant"], []).append(one)
    return {who: {key: fmean(one[key] for one in played) for key in _KEPT} for who, played in cells.items()}


def _compare(by_name: Figures) -> None:
    """Adds the cheapest library that keeps half of the facts, the one that waits least, and ours beside them."""
    others = {who: one for who, one in by_name.items() if who in {peer.__name__ for peer in PEERS}}
    ours = by_name["Ours"]
    fair = {who: one["price"] for who, one in others.items() if one["facts"] >= HALF and not one["lost"]}
    if fair:
        least = min(fair, key=lambda who: fair[who])
        by_name["price_of_cheapest_with_half"] = {"library": least, "ours_over_it": ours["price"] / fair[least]}
    waits = {who: one["waiting"] for who, one in others.items()}
    if waits:
        least = min(waits, key=lambda who: waits[who])
        by_name["waiting_of_best"] = {"library": least, "its": waits[least], "ours": ours["waiting"]}


def others(jobs: int) -> Figures:
    """Ours in other sessions: failing summarisers at a window of 8,000, and what a user typed beside long results."""
    wanted = [("field-8k", how, "Ours") for how in FAULTS]
    wanted += [(name, "extracts", "Ours") for name in ("invoices", "airline")]
    wanted += [("file-reader", "keeps-95", "Ours")]
    found = run_all(field.cell, wanted, jobs)
    keys = (*_KEPT, "ids_of_session", "calls", "requests")
    return {f"{one['session']} {one['summariser']}": {key: one[key] for key in keys if key in one} for one in found}


def _of(module: str) -> Callable[[int], Figures]:
    """The part of another benchmark: its function `baseline`."""
    return lambda jobs: import_module(f"benchmarks.{module}").baseline(jobs)  # type: ignore[no-any-return]


PARTS: Mapping[str, Callable[[int], Figures]] = {
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the file after each part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baseline", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--commit", help="what the package must be at")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    given = parser.parse_args(arguments)
    commit = _commit()
    if given.commit and not commit.startswith(given.commit):
        parser.error(f"{CHECKOUT} is at {commit}, not at {given.commit}")
    for part in given.parts:
        found = rounded(PARTS[part](given.jobs))
        kept = json.loads(given.file.read_text("utf-8")) if given.file.exists() else {}
        given.file.write_text(json.dumps({**kept, "commit": commit, part: found}, indent=1) + "\n", "utf-8")
        print(f"{part} of {commit[:7]} is written to {given.file}", file=sys.stderr)
    return 0


def _commit() -> str:
    asked = ["git", "-C", str(CHECKOUT), "rev-parse", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
