"""Prints two tables of docs/reliability.md: what each fault of a provider costs, and what draws each kind of attack.

`python -m benchmarks.reliability` plays 300 requests a fault in virtual time, one a second, with a small window (budget
2,500 tokens); it takes about a minute. Exit code 1 when a fault breaks a bound.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.field.virtual import run_virtually
from benchmarks.unreliable import FAULTS, SECONDS, Fault, Hostile, Stored, used_calls
from context_summarize import SummarizingContextManager
from context_summarize.messages.pairs import broken_pairs
from context_summarize.testing import tool_session

REQUESTS = 300
BUDGET = 2_500
"""Tokens that a request may hold."""
WASTED, PER_SUMMARY = 60, 2
"""Calls without a usable summary in any 300 requests, and what each stored summary adds."""
SHARED_WAIT = 60.0
"""Seconds that one request may wait: the setting `wait_seconds`, as it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one fault costs a session of 300 requests."""

    fault: str
    calls: int
    used: int
    """Calls whose answers are in a stored summary."""
    stored: int
    """Summaries stored."""
    fallbacks: int
    """Fallback summaries in the last request, of `nodes` in all."""
    nodes: int
    waited: float
    longest: float
    """Virtual seconds that requests waited: all of them, the longest."""
    broken: tuple[str, ...]
    """Bounds that were not kept."""

    @property
    def wasted(self) -> int:
        """Calls that brought nothing."""
        return self.calls - self.used

    @property
    def bound(self) -> int:
        """As many may."""
        return WASTED + PER_SUMMARY * self.stored


async def _session(fault: Fault) -> Cost:
    provider, loop = Hostile(fault.ways), asyncio.get_running_loop()
    store = Stored(provider)
    manager = SummarizingContextManager(
        config={"keep_recent": 4, "segment_tokens": 256, "summary_tokens": 64},
        store=store,
        clock=loop.time,
        sleep=asyncio.sleep,
    )
    broken, times = [], []
    for row in tool_session(REQUESTS // 2, size=300):
        if row["role"] == "assistant":
            started = loop.time()
            rows = await manager.get_messages_for_request(BUDGET, provider)
            times.append(loop.time() - started)
            provider.served += 1
            if broken_pairs(rows):
                broken.append("broken pairs")
            await asyncio.sleep(1)
        await manager.add_message(row)
    provider.released.set()
    statistics = await manager.statistics()
    if statistics.view_tokens > BUDGET:
        broken.append(f"the last request holds {statistics.view_tokens:,} tokens")
    await manager.close()
    cost = Cost(
        fault=fault.name,
        calls=provider.calls,
        used=len(used_calls(provider, store)),
        stored=len(store.came),
        fallbacks=statistics.digests,
        nodes=statistics.summaries,
        waited=sum(times),
        longest=max(times),
        broken=(),
    )
    return replace(cost, broken=tuple(dict.fromkeys([*broken, *_over(cost)])))


def _over(cost: Cost) -> Iterator[str]:
    """What a session took above its bounds."""
    if cost.wasted > cost.bound:
        yield f"{cost.wasted} calls without a summary, the bound is {cost.bound}"
    if cost.longest > SHARED_WAIT + SECONDS / 2:
        yield f"a request waited {cost.longest:.0f} s"


def cost_of(fault: Fault) -> Cost:
    """Play a session of 300 requests with this fault."""
    return run_virtually(_session(fault))


# --- the attack's classes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attack:
    """One class of attacks, and what draws its cases."""

    name: str
    draws: str
    tests: tuple[str, ...]
    """`file::test` of each generator."""


ATTACKS = (
    Attack(
        "concurrency",
        "requests, edits, `clear`, `compact`, `undo` and cancellations in any order",
        ("tests/properties/test_state_machine.py::TestManagerMachine", "tests/properties/test_steering.py"),
    ),
    Attack(
        "disk",
        "errors at any write, cut and sync; kills at any moment",
        (
            "tests/unit/persistence/test_journal_trouble.py::test_whatever_fails_when_there_is_never_a_gap",
            "tests/behaviour/test_durability.py::test_nothing_acknowledged_is_lost_by_a_kill",
        ),
    ),
    Attack(
        "shared store",
        "outages, slow answers and writes in any order; damaged entries",
        (
            "tests/unit/stores/test_layered.py::test_whatever_happens_what_was_put_is_got_and_arrives_in_the_end",
            "tests/unit/stores/test_codec.py::test_damage_gives_one_error_or_a_value_of_right_types",
        ),
    ),
    Attack(
        "provider",
        "sequences of up to six behaviours, at three speeds of the host",
        ("tests/properties/test_calls.py::test_calls_without_a_summary_are_bounded_whatever_a_provider_does",),
    ),
    Attack(
        "secrets",
        "every format in every neighbourhood, with drawn values",
        ("tests/unit/redaction/test_neighbourhoods.py::test_every_format_is_found_in_every_neighbourhood",),
    ),
    Attack(
        "size",
        "rows of 0 to 131,072 characters, budgets of 1 to 10**30 tokens",
        ("tests/properties/test_sizes.py", "tests/properties/test_budgets.py"),
    ),
    Attack(
        "report",
        "markup and text in every place of a session that the page shows",
        ("tests/properties/test_report.py::test_no_text_of_a_session_becomes_markup_of_its_report",),
    ),
    Attack(
        "command line",
        "files of any lines and bytes, with any options",
        (
            "tests/properties/test_command_line.py"
            "::test_every_call_of_the_command_answers_or_says_in_words_what_is_wrong",
        ),
    ),
    Attack(
        "injection",
        "600 messages that hold orders of other people; 600 that hold orders of the user",
        ("tests/unit/facts/test_own_voice.py::test_no_pasted_order_is_taken",),
    ),
)
"""Every class."""


def attack_table() -> list[str]:
    """The classes and their generators, in Markdown."""
    lines = ["| class | what is drawn | generator |", "| --- | --- | --- |"]
    for one in ATTACKS:
        lines.append(f"| {one.name} | {one.draws} | {', '.join(f'`{test}`' for test in one.tests)} |")
    return lines


# --- output -----------------------------------------------------------------------------------------------------------

HEADS = ("calls", "used", "stored", "fallbacks", "waited", "longest", "wasted", "bound")


def cost_table(costs: Sequence[Cost]) -> list[str]:
    """The costs, in Markdown."""
    lines = [f"| fault of the provider | {' | '.join(HEADS)} |", "| --- |" + " ---: |" * len(HEADS)]
    for one in costs:
        cells = (
            f"{one.calls}",
            f"{one.used}",
            f"{one.stored}",
            f"{one.fallbacks} of {one.nodes}",
            f"{one.waited:.0f} s",
            f"{one.longest:.0f} s",
            f"{one.wasted}",
            f"{one.bound}",
        )
        lines.append(f"| {one.fault} | {' | '.join(cells)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; 1 if a bound is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="put the tables into this page, between their marks")
    parser.add_argument("--fault", help="faults whose names hold this text only")
    given = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # every failure is told; the table counts them
    costs = []
    for fault in FAULTS:
        if given.fault is None or given.fault in fault.name:
            costs.append(cost_of(fault))
            print(f"{fault.name}: {costs[-1].calls} calls", file=sys.stderr)
    tables = {"calls": cost_table(costs), "attacks": attack_table()}
    for table in tables.values():
        print("\n".join(table), end="\n\n")
    if given.write is not None:
        given.write.write_text(with_tables(given.write.read_text("utf-8"), tables), "utf-8")
    broken = [f"{one.fault}: {text}" for one in costs for text in one.broken]
    print("\n".join(broken), file=sys.stderr)
    return 1 if broken else 0


def with_tables(page: str, tables: dict[str, list[str]]) -> str:
    """The page with these tables between their marks."""
    for name, lines in tables.items():
        first, last = f"<!-- {name}: python -m benchmarks.reliability -->\n", f"<!-- {name} end -->\n"
        before, _, rest = page.partition(first)
        page = before + first + "\n".join(lines) + "\n" + last + rest.partition(last)[2]
    return page


if __name__ == "__main__":
    sys.exit(main())
