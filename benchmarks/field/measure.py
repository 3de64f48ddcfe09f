"""Plays one session to one contestant in virtual time and measures every request."""

from __future__ import annotations

import functools
import os
import resource
import time
from collections.abc import Sequence
from statistics import fmean

from benchmarks.field.contestants import Entry, FieldTerms
from benchmarks.field.model import CODE, PROSE, Fact, StandIn, kind_of
from benchmarks.field.result import Prices, Result
from benchmarks.field.scenarios import Scenario
from benchmarks.field.views import HEADS, Counting, Views
from benchmarks.peers import Contestant, Row, text_of
from context_summarize.messages.pairs import broken_pairs
from context_summarize.tokens.measure import measure

_CONVERSIONS = 20
"""Requests between two looks at what the adapter's conversion costs."""


EQUAL = 0.25
"""Share of the budget to which the last views are cut down to be compared at equal size."""


class Play:
    """One session and one contestant."""

    def __init__(
        self,
        entry: Entry,
        scenario: Scenario,
        rows: Sequence[Row],
        facts: Sequence[Fact],
        terms: FieldTerms,
        model: StandIn,
        prices: Prices,
    ) -> None:
        self._entry, self._scenario, self._rows, self._facts = entry, scenario, rows, facts
        self._terms, self._model, self._prices = terms, model, prices
        self._count = functools.lru_cache(maxsize=200_000)(model.count)
        self._views = Views(self._count, frozenset(text_of(row) for row in rows))
        started = time.process_time()
        self._sizes = [measure(row, self._count) for row in rows]
        self._per_character = (time.process_time() - started) / sum(len(text_of(row)) + 1 for row in rows)
        self._cpu: list[float] = []
        self._conversion = 0.0
        """CPU seconds that the adapter takes to bring one row back."""
        self._spent = 0.0
        self._shares: list[float] = []
        self._latency = 0.0
        self._totals = [0, 0]
        self._waits: list[float] = []
        self._first_boundary: int | None = None
        self._budget = scenario.budget
        self._restarted = scenario.restart is None
        self._is_cold = False
        """True for a request after a pause, of which the provider's prompt cache holds nothing."""
        self._result = Result(
            entry.name, entry.make.title, scenario.name, model.seed, model.traits.keep, sum(self._sizes)
        )

    async def run(self) -> Result:
        """Play it.

        Raises:
            ImportError: the contestant is not installed.
        """
        started, memory = time.monotonic(), _peak_memory()
        one = self._entry.make(self._terms)
        try:
            for fed, row in enumerate(self._rows):
                if row["role"] == "assistant":
                    await self._request(one, fed)
                with self._cpu_of():
                    await one.add(row)
        finally:
            await one.close()
        self._close(memory)
        self._result.seconds = time.monotonic() - started
        return self._result

    def _cpu_of(self) -> _Spent:
        return _Spent(self)

    async def _request(self, one: Contestant, fed: int) -> None:
        result, clock = self._result, self._terms.clock
        self._switch()
        calls = None
        if self._restart_now(fed):
            self._restarted = True
            await one.restart()
            calls = len(self._model.calls)
        result.requests += 1
        self._is_cold = bool(self._scenario.pause_every) and result.requests % (self._scenario.pause_every or 1) == 0
        if self._is_cold:
            await clock.sleep(self._scenario.pause_seconds)
        before = clock.now()
        try:
            with self._cpu_of():
                view = await one.view()
        except Exception as error:  # noqa: BLE001 (whatever reaches the host is what is counted)
            kind = type(error).__name__
            result.lost_turns += 1
            result.errors[kind] = result.errors.get(kind, 0) + 1
            self._waited(clock.now() - before, fed)
            return
        self._waited(clock.now() - before, fed)
        held = self._views.facts() if calls is not None else set()
        size = self._look(view, fed)
        if calls is not None:
            result.calls_after_restart = len(self._model.calls) - calls
            result.facts_after_restart = len(self._views.facts()) / len(held) if held else 1.0
        await self._main_model(one, view, size, fed)

    async def _main_model(self, one: Contestant, view: Sequence[Row], size: int, fed: int) -> None:
        if self._result.requests % _CONVERSIONS == 1:
            started = time.process_time()
            one.convert(view)
            # There and back; a view is only brought back.
            self._conversion = (time.process_time() - started) / 2 / max(1, len(view))
        self._cpu.append(max(0.0, self._spent - self._conversion * len(view)))
        self._spent = 0.0
        seconds = self._model.traits.seconds(size, self._sizes[fed])
        self._latency += seconds
        with self._cpu_of():  # what goes on in the background
            await self._terms.clock.sleep(seconds)

    def _waited(self, seconds: float, fed: int) -> None:
        self._waits.append(seconds)
        if seconds:
            self._result.waits.append((sum(self._sizes[:fed]), round(seconds, 2)))

    def _look(self, view: Sequence[Row], fed: int) -> int:
        result, prices, rows = self._result, self._prices, len(self._views.rows)
        size, stable, same = self._views.next(view)
        if same < rows:
            result.boundaries += 1
            self._first_boundary = self._first_boundary or len(self._cpu)
        self._totals[0] += size
        self._totals[1] += stable
        cached = 0 if self._is_cold else stable
        result.price_main += prices.read * cached + prices.write * (size - cached)
        result.over_budget += size > self._budget
        result.broken_pairs += bool(broken_pairs(view))
        first = next((row["role"] for row in view if row["role"] not in HEADS), "user")
        result.not_user_first += first != "user"
        seen = {fact.value for fact in self._facts if fact.row < fed}
        if seen:
            self._shares.append(len(self._views.facts() & seen) / len(seen))
        result.series.append((sum(self._sizes[:fed]), size))
        return size

    def _switch(self) -> None:
        """The models take turns. Who has fixed its trigger when it was made stays with that of the smaller window."""
        other = self._scenario.other_budget
        if other is not None:
            turn = self._result.requests // self._scenario.turns_per_model % 2
            self._budget = other if turn else self._scenario.budget
            self._terms.change_budget(self._budget)

    def _restart_now(self, fed: int) -> bool:
        """In the later part of the session, where the view is far from its trigger: no call is due of itself."""
        if self._restarted or fed < len(self._rows) * (self._scenario.restart or 0):
            return False
        size = self._result.series[-1][1] if self._result.series else 0
        return size < self._budget * self._terms.trigger * 0.8

    def _close(self, memory: float) -> None:
        result, calls, prices = self._result, self._model.calls, self._prices
        found, total = self._views.facts(), len(self._facts)
        result.facts_end = _share(self._facts, found)
        for name in ("user", "assistant", "tool"):
            result.facts_by[name] = _share([fact for fact in self._facts if fact.role == name], found)
        for name in (CODE, PROSE):
            result.facts_by[name] = _share([fact for fact in self._facts if kind_of(fact.value) == name], found)
        result.facts_mean = fmean(self._shares) if self._shares else 0.0
        result.facts_equal = len(self._views.facts_within(int(self._scenario.budget * EQUAL))) / max(1, total)
        result.calls, result.refused = len(calls), sum(call.refused for call in calls)
        result.read, result.wrote = sum(c.read for c in calls if not c.refused), sum(call.wrote for call in calls)
        result.largest_input = max((call.read for call in calls), default=0)
        result.price_summaries = result.read + prices.output * result.wrote
        result.view_mean = self._totals[0] / max(1, result.requests - result.lost_turns)
        result.stable = self._totals[1] / max(1, self._totals[0])
        result.waited = sum(self._waits) / max(1.0, self._latency)
        result.waited_worst = max(self._waits, default=0.0)
        self._close_cpu()
        if self._entry.counts and isinstance(self._terms.count, Counting):
            result.cpu_counting = 1000 * self._per_character * self._terms.count.characters / max(1, result.requests)
        result.memory = max(0.0, _peak_memory() - memory)
        result.series = result.series[:: max(1, len(result.series) // 400)]

    def _close_cpu(self) -> None:
        result, cpu = self._result, [seconds * 1000 for seconds in self._cpu]
        if not cpu:
            return
        ordered = sorted(cpu)
        result.cpu_mean = fmean(cpu)
        result.cpu_p50, result.cpu_p99 = ordered[len(cpu) // 2], ordered[min(len(cpu) - 1, int(len(cpu) * 0.99))]
        after = cpu[self._first_boundary or 0 :]
        fifth = max(1, len(after) // 5)
        result.cpu_growth = fmean(after[-fifth:]) / max(1e-6, fmean(after[:fifth]))

    @property
    def last_view(self) -> list[Row]:
        """The rows of the newest request."""
        return self._views.rows

    def spent(self, seconds: float) -> None:
        """CPU of the contestant."""
        self._spent += seconds

    @property
    def stand_in_cpu(self) -> float:
        """CPU of the stand-in so far."""
        return self._model.cpu


class _Spent:
    """CPU seconds of a block, without those of the stand-in."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def __enter__(self) -> None:
        self._started = time.process_time() - self._play.stand_in_cpu

    def __exit__(self, *_: object) -> None:
        self._play.spent(time.process_time() - self._play.stand_in_cpu - self._started)


def _share(facts: Sequence[Fact], found: set[str]) -> float:
    return sum(fact.value in found for fact in facts) / max(1, len(facts))


def _peak_memory() -> float:
    """Megabytes; the kernel gives kilobytes, on macOS bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if os.uname().sysname != "Darwin" else peak / 1024**2
