"""The report: docs/benchmarks.md from the results of a grid."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from benchmarks.field.columns import (
    BREAKS,
    COST,
    MEMORY,
    OTHERS,
    RESTART,
    TIME,
    Show,
    millions,
    percent,
    share,
    table,
    two,
)
from benchmarks.field.conclusions import conclusions
from benchmarks.field.contestants import FRUGAL, entries, who_is_who
from benchmarks.field.grid import MAIN, SLOW, Grid
from benchmarks.field.measure import EQUAL
from benchmarks.field.model import Traits
from benchmarks.field.result import Prices
from benchmarks.field.scenarios import scenarios

AGAINST = (
    ("facts at the end", "facts_end", max, "≥ 1.7"),
    ("price", "price", min, "≤ 1.0"),
    ("waiting", "waited", min, "≤ 0.25"),
    ("CPU per request, mean", "cpu_mean", min, "≤ 0.2"),
    ("CPU per request, p50", "cpu_p50", min, "≤ 0.2"),
    ("CPU per request, mean, counting too", "cpu_whole", min, "≤ 0.2"),
)


def against(grid: Grid) -> list[str]:
    """Ours beside the best peer of each column: of those as they come, and of the tuned ones too."""
    lines = ["| | ours | frugal | best peer, defaults | ours | frugal | best peer, tuned too | ours | frugal | aim |"]
    lines.append("| --- | ---: | ---: | --- | ---: | ---: | --- | ---: | ---: | --- |")
    own = [name for name in ("ours", f"ours, {FRUGAL}") if grid.of(name)]
    for title, column, best_of, aim in AGAINST:
        figures = [grid.mean(name, column) for name in own]
        cells = [title, *(_figure(column, figure) for figure in figures), *["–"] * (2 - len(own))]
        for kinds in (("peer",), ("peer", "tuned")):
            values = {name: grid.mean(name, column) for name in grid.names() if entries()[name].kind in kinds}
            if not values:
                return []
            name = best_of(values, key=lambda one: values[one])
            cells.append(f"{name} {_figure(column, values[name])}")
            cells += [f"{figure / values[name]:.2f}×" if values[name] else "–" for figure in figures]
            cells += ["–"] * (2 - len(own))
        lines.append(f"| {' | '.join([*cells, aim])} |")
    return [*lines, ""]


def _figure(column: str, value: float) -> str:
    show: dict[str, Show] = {"facts_end": percent, "price": millions, "waited": share}
    return show.get(column, two)(value)


INTRO = """\
The stand-in is the same for every contestant. It shows what each library's mechanics keep, cost and make people wait
for. Instructions to keep a fact have no effect on it, however good they are. `make bench-model` and
`benchmarks/probes.py` ask a real model; [benchmarks-real.md](benchmarks-real.md) plays real conversations.
"""

READING = """\
## How to read it

* **facts**: the session holds {facts} facts, evenly in user rows, assistant rows and tool results. Half of them are
  identifiers (`FACT-0012-3F2A`), which code can find in prose. Half are plain words (`watchword marble-otter`),
  which it cannot find. *end*: share of the facts in the last view. *mean*: share of the facts said so far, over all
  requests. *equal size*: share in the last view after it is reduced to {equal:.0%} of the budget. The oldest
  verbatim rows go first, then the oldest summaries. This shows what a view holds beyond the effect of its length.
* **price** of the whole session, in units of one uncached input token. It consists of the requests (cache read
  {read}, cache write {write}; the prompt cache holds the bytes that are the same as in the previous request) and
  the calls of the summariser (input 1, output {output}). The model's own answers cost the same for all and are left
  out.
* **waiting** in virtual time, as a share of the model's own latency. An answer takes {start:g} s, plus {read_s:g} s
  for each token read and {write_s:g} s for each token written. There is no pause between requests: tools take no
  time and users answer at once. So background work can hide only in the model's own latency.
* **CPU** of the contestant per request. It includes the rows added since the previous request, and background work.
  The stand-in's own CPU time is subtracted. So is the adapter's conversion back to rows, as far as it can be
  measured (half of the time for converting the view there and back). This module counts every row once with a
  tokenizer, and its figure includes that. Peers get the same tokenizer with a cache, so their figures include no
  counting. *counting* is the time that counting would add without the cache, for peers that count by themselves.
  *growth*: mean of the last fifth of the requests, divided by the mean of the first fifth after the first
  compaction. *memory*: growth of the process at its peak.
* **aim**: the goal of this module, as a multiple of the best peer's figure. 1.7 times the facts would be 97%. A
  summariser that keeps {keep:.0%} of what it reads keeps less than that after two readings. The requests of the
  cheapest peer hold almost nothing of what was said; only the frugal settings cost less. The CPU aim is not
  reached, because views are copies, and code searches for the exact values beside the summaries. *counting too*:
  with the counting time of peers that count by themselves, without a cache.
* **over budget**, **broken pairs**, **not a user's row first**: number of views. **inputs refused**: calls of the
  summariser that did not fit its window.
* The stand-in keeps each fact that it reads with a probability of {keep:.0%}, if the facts fit its answer. Seed,
  input and fact decide which. It writes as much as the prompt asks for. If the prompt asks for no length, it writes
  {share:.0%} of what it reads. An answer has at most {max_output:,} tokens.
"""


def markdown(grid: Grid, pictures: Sequence[str], command: str, prices: Prices, traits: Traits) -> str:
    """The whole page."""
    names, scenario = grid.names(), scenarios()[MAIN]
    lines = [
        "# Compared with other libraries",
        "",
        *conclusions(grid),
        "",
        INTRO,
        _conditions(grid, command),
        "",
        "## Compared with the best peer",
        "",
        *against(grid),
    ]
    lines += _picture("frontier.svg", "facts in the last view against the price of the session", pictures)
    lines += [
        f"## {scenario.title}: facts in the view",
        "",
        *table(grid, names, MEMORY),
        *_forgetful(grid),
        "## Price",
        "",
    ]
    lines += [*table(grid, names, COST), "## Waiting, CPU, memory", "", *table(grid, names, TIME)]
    lines += _picture("waiting.svg", "waiting", pictures)
    lines += _picture("views.svg", "tokens of the view over the session", pictures)
    lines += ["## What broke", "", *table(grid, names, BREAKS), *_errors(grid)]
    lines += ["## Other sessions", "", "This module and the two peers that hold the most facts above.", ""]
    lines += _others(grid, names)
    if grid.faults:
        lines += [
            "## A failing summariser",
            "",
            "See [reliability-peers.md](reliability-peers.md).",
            "",
            grid.faults,
            "",
        ]
    lines += [_reading(scenario.facts, prices, traits), *_contestants(grid), *_missing(grid)]
    return "\n".join(lines).rstrip() + "\n"


def _conditions(grid: Grid, command: str) -> str:
    """When, how and on what was measured."""
    first = grid.of(grid.names()[0])
    seeds = sorted({one.seed for one in grid.results})
    return (
        f"{date.today().isoformat()}, `{command}`, {machine()}. The budget is"
        f" {scenarios()[MAIN].budget:,} tokens. Other libraries compact at 70 %, this module where its settings"
        f" say; the newest 10 rows are kept, if the library can set that and the setting is not the one under test."
        f" The session has {first[0].tokens:,} tokens in"
        f" {first[0].requests:,} requests. Figures are means over the seeds {', '.join(map(str, seeds))},"
        f" with the range if they differ (only"
        f" seed {seeds[0]} for a library that takes more than {SLOW} s of real time for one session)."
    )


def _picture(name: str, about: str, pictures: Sequence[str]) -> list[str]:
    return [f"![{about}](benchmarks/{name})", ""] if name in pictures else []


def _others(grid: Grid, names: Sequence[str]) -> Iterator[str]:
    """The tables of all sessions but the main one."""
    for name, other in scenarios().items():
        if name != MAIN and any(grid.of(one, name) for one in names):
            columns = (*OTHERS, *RESTART) if other.restart is not None else OTHERS
            yield from (f"### {other.title}", "", *table(grid, names, columns, name))


def _reading(facts: int, prices: Prices, traits: Traits) -> str:
    return READING.format(facts=facts, equal=EQUAL, keep=traits.keep, **units(prices, traits))


def units(prices: Prices, traits: Traits) -> dict[str, float]:
    """Prices and the stand-in's traits, by the names that a page's text has for them."""
    return {
        "read": prices.read,
        "write": prices.write,
        "output": prices.output,
        "share": traits.share,
        "max_output": traits.max_output,
        "start": traits.start_seconds,
        "read_s": traits.read_seconds,
        "write_s": traits.write_seconds,
    }


def _forgetful(grid: Grid) -> list[str]:
    """How much of the distance between contestants hangs on what the stand-in keeps."""
    keeps = sorted({one.keep for one in grid.forgetful}, reverse=True)
    if not keeps:
        return []
    lines = ["Facts at the end with stand-ins that keep less of what they read:", ""]
    usual = grid.results[0].keep
    lines.append(f"| | {' | '.join(f'keeps {keep:.0%}' for keep in [usual, *keeps])} |")
    lines.append("| --- |" + " ---: |" * (1 + len(keeps)))
    for name in dict.fromkeys(one.name for one in grid.forgetful):
        found = {one.keep: one.facts_end for one in grid.forgetful if one.name == name}
        found[usual] = grid.of(name)[0].facts_end
        lines.append(f"| {name} | {' | '.join(percent(found[k]) if k in found else '–' for k in [usual, *keeps])} |")
    return [*lines, ""]


def _errors(grid: Grid) -> list[str]:
    lines = []
    for one in grid.results:
        kinds = ", ".join(f"{kind} × {times}" for kind, times in sorted(one.errors.items()))
        if kinds:
            lines.append(f"* Reached the host of {one.name}, {one.scenario}, seed {one.seed}: {kinds}.")
    return [*lines, ""] if lines else []


def _contestants(grid: Grid) -> list[str]:
    versions = {name: version for one in grid.results for name, version in one.versions.items()}
    told = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return [*who_is_who(grid.names()), "", f"Python {platform.python_version()}; {told}.", ""]


def _missing(grid: Grid) -> list[str]:
    return [f"* Not run: {name}: {why}" for name, why in grid.missing.items()]


def machine() -> str:
    """Cores and processor, in words."""
    model = platform.machine()
    found = Path("/proc/cpuinfo")
    if found.exists():
        named = [
            line.partition(":")[2].strip() for line in found.read_text().splitlines() if line.startswith("model name")
        ]
        model = named[0] if named else model
    return f"{os.cpu_count()} cores of {model}"
