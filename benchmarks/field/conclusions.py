"""The opening of docs/benchmarks.md: what a reader may conclude, in five sentences made from the figures of the run."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.field.columns import millions, percent, share, two
from benchmarks.field.contestants import FRUGAL, entries, profiles
from benchmarks.field.grid import MAIN, Grid
from benchmarks.field.measure import EQUAL
from benchmarks.field.scenarios import scenarios

OURS = "ours"
FAIR = 0.55
"""Share of the facts from which on a price is worth comparing: a view that holds next to nothing is always cheap."""


def conclusions(grid: Grid) -> list[str]:
    """Five sentences, or one that says why there are none."""
    peers = _sound_peers(grid)
    if not grid.of(OURS) or not peers:
        return ["This run has no figures of this module or of no other library, so there is nothing to conclude."]
    told = (_facts(grid, peers), _price(grid, peers), _waiting(grid, peers), _cpu(grid, peers), _cannot(grid))
    return [f"{number}. {sentence}" for number, sentence in enumerate(told, 1)]


def _sound_peers(grid: Grid) -> list[str]:
    """Other libraries with results; those that broke nothing, if there are any."""
    return [name for name in grid.peers() if not _faults(grid, name)] or grid.peers()


def _faults(grid: Grid, name: str) -> int:
    return sum(one.lost_turns + one.over_budget + one.broken_pairs for one in grid.of(name))


def _best(grid: Grid, peers: list[str], column: str, choose: Callable[..., str] = max) -> tuple[str, float]:
    """A peer and its figure."""
    name = choose(peers, key=lambda one: grid.mean(one, column))
    return name, grid.mean(name, column)


def _facts(grid: Grid, peers: list[str]) -> str:
    ours, scenario = grid.of(OURS)[0], scenarios()[MAIN]
    peer, held = _best(grid, peers, "facts_end")
    small, small_held = _best(grid, peers, "facts_equal")
    return (
        f"**Facts:** after a session of {ours.tokens:,} tokens in a window of {scenario.budget:,}, the last request of"
        f" this module, with its default settings, holds {percent(grid.mean(OURS, 'facts_end'))} of {scenario.facts}"
        f" planted facts, and that of the best other library ({peer}) {percent(held)}; when both are cut to"
        f" {EQUAL:.0%} of the window, this module holds {percent(grid.mean(OURS, 'facts_equal'))}{_smaller(grid)} and"
        f" the best other library ({small}) {percent(small_held)}."
    )


def _smaller(grid: Grid) -> str:
    """The profile that holds most at equal size, where that is not the default: its summaries fit there."""
    name = max(filter(grid.of, profiles()), key=lambda one: grid.mean(one, "facts_equal"))
    if name == OURS:
        return ""
    profile, held = name.removeprefix(f"{OURS}, "), percent(grid.mean(name, "facts_equal"))
    return f" ({held} with `profile: {profile}`, whose requests are smaller)"


def _price(grid: Grid, peers: list[str]) -> str:
    own = grid.mean(OURS, "price")
    parts = [f"**Price:** with this window the session costs {millions(own)} million uncached input tokens"]
    fair = [name for name in peers if grid.mean(name, "facts_end") >= FAIR]
    if fair:
        peer, price = _best(grid, fair, "price", min)
        parts.append(
            f"that is {_times(own, price)} the {millions(price)} million of the cheapest other library that holds at"
            f" least {FAIR:.0%} of the facts ({peer})"
        )
    cheapest, least = _best(grid, peers, "price", min)
    held = percent(grid.mean(cheapest, "facts_end"))
    parts.append(
        f"it is {_times(own, least)} the {millions(least)} million of the cheapest of all ({cheapest}, which holds"
        f" {held})"
    )
    if grid.of(frugal := f"{OURS}, {FRUGAL}"):
        price, held = grid.mean(frugal, "price"), percent(grid.mean(frugal, "facts_end"))
        parts.append(f"with `profile: {FRUGAL}` this module costs {millions(price)} million and holds {held}")
    return "; ".join(parts) + "."


def _waiting(grid: Grid, peers: list[str]) -> str:
    peer, waited = _best(grid, peers, "waited", min)
    faults = _faults(grid, OURS)
    return (
        f"**Waiting:** its requests wait for summaries for {share(grid.mean(OURS, 'waited'))} of the model's own"
        f" latency, in virtual time, and those of the other library that waits least ({peer}) for {share(waited)};"
        f" {faults or 'none'} of its requests {'was' if faults == 1 else 'were'} lost, too large, or had a tool call"
        " without its result."
    )


def _cpu(grid: Grid, peers: list[str]) -> str:
    own = grid.mean(OURS, "cpu_mean")
    quick, mean = _best(grid, peers, "cpu_mean", min)
    whole, counted = _best(grid, peers, "cpu_whole", min)
    return (
        f"**CPU:** a request takes it {two(own)} ms of CPU, counting of tokens included; that is {_times(own, mean)}"
        f" the {two(mean)} ms of the quickest other library without counting ({quick}), and {_times(own, counted)} the"
        f" {two(counted)} ms of the quickest with counting ({whole})."
    )


def _times(own: float, theirs: float) -> str:
    return f"{own / theirs:.2f} times" if theirs else "more than"


def _cannot(grid: Grid) -> str:
    return (
        "**Not shown:** the figures cannot show how well a real model summarises, or how well an agent continues after"
        " a summary, because a stand-in replaces the model: it keeps each fact that it reads with a probability of"
        f" {grid.of(OURS)[0].keep:.0%}{_forgetful(grid)}."
    )


def _forgetful(grid: Grid) -> str:
    """What is left with the stand-in that keeps least, of ours and of the best peer that was measured with it."""
    ours = [one for one in grid.forgetful if one.name == OURS]
    if not ours:
        return ""
    least = min(ours, key=lambda one: one.keep)
    others = [one for one in grid.forgetful if one.keep == least.keep and entries()[one.name].is_peer]
    told = (
        f"; with one that keeps {least.keep:.0%}, this module holds {percent(least.facts_end)} of the facts at the end"
    )
    if not others:
        return told
    best = max(others, key=lambda one: one.facts_end)
    return f"{told} and the best other library measured with it ({best.name}) {percent(best.facts_end)}"
