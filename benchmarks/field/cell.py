"""One cell of the grid: a contestant, a scenario and a seed, set up and played in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata

from benchmarks.field.contestants import Entry, FieldTerms
from benchmarks.field.measure import Play
from benchmarks.field.model import StandIn, Traits, plant
from benchmarks.field.result import Prices, Result
from benchmarks.field.scenarios import Scenario
from benchmarks.field.views import Count, Counting
from benchmarks.field.virtual import run_virtually
from benchmarks.peers import LoopClock, Row, Terms, text_of
from context_summarize.tokens.counter import TokenCounter


def play(entry: Entry, scenario: Scenario, seed: int, traits: Traits, prices: Prices, trigger: float = 0.7) -> Result:
    """One cell of the grid.

    Raises:
        ImportError: the contestant is not installed.
        ValueError: its adapter does not convert the session without loss.
    """
    rows, facts = plant(scenario.rows(), scenario.facts, seed)

    async def main() -> Result:
        counter = TokenCounter()
        await counter.load()
        terms, model = _terms(scenario, rows, counter.count, seed, traits, trigger)
        if entry.make(terms).convert(rows) != list(rows):
            raise ValueError("its adapter does not convert the rows without loss")
        result = await Play(entry, scenario, rows, facts, terms, model, prices).run()
        result.versions = {name: metadata.version(name) for name in entry.make.packages}
        return result

    return run_virtually(main())


def _terms(
    scenario: Scenario, rows: Sequence[Row], count: Count, seed: int, traits: Traits, trigger: float
) -> tuple[FieldTerms, StandIn]:
    """Contestants count with a cache of their own: what the measuring counts warms nobody's."""
    window = max(scenario.budget, scenario.other_budget or 0) + traits.max_output
    settled = Traits(**{**asdict(traits), "window": window})
    model = StandIn(count, settled, seed)
    system = "\n\n".join(text_of(row) for row in rows if row["role"] == "system")
    spoken = [row for row in rows if row["role"] != "system"]
    mean = Terms(answer=model.ask_plainly, count=count, budget=1).size(spoken) / max(1, len(spoken))
    terms = FieldTerms(
        answer=model.ask_plainly,
        reads=model.ask,
        count=Counting(count),
        budget=scenario.budget,
        trigger=trigger,
        system=system,
        mean_row=mean,
        clock=LoopClock(),
    )
    return terms, model
