"""Prints two tables of docs/reliability.md: what each fault of a provider costs, and what draws each kind of attack.

`python -m benchmarks.reliability` plays 300 requests a fault in virtual time, one a second, with a small window (budget
2,500 tokens); it takes about a minute. Exit code 1 when a fault breaks a bound.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from amplifier_core.llm_errors import (
    AbortError,
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitError,
)

from benchmarks.field.virtual import run_virtually
from benchmarks.unreliable import (
    DEAF,
    GOOD,
    HANGS,
    ROOM,
    SECONDS,
    SIZE,
    SLOW,
    UNASKED,
    Hostile,
    Odd,
    Stored,
    Unreadable,
    cut,
    used,
    used_calls,
)
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
WORDY = "It was looked up. " * 60
CHAT = "I'm glad to assist you with your request. Can you please tell me more?"
ABOUT_ELSE = (
    "The recipe begins with butter, flour, sugar and cinnamon; the oven warms slowly while apples are peeled, sliced "
    "and arranged in circles over pastry, brushed with apricot jam, sprinkled with almonds and baked until golden."
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One behaviour of a provider."""

    name: str
    ways: tuple[Any, ...]
    """What it does at each call, again and again; see `Hostile`."""


FAULTS = (
    Fault("none", (GOOD,)),
    Fault("503 or a lost connection", (ProviderUnavailableError("503"), ConnectionResetError("reset"))),
    Fault("429, without and with a time to wait", (RateLimitError("slow"), RateLimitError("slow", retry_after=5))),
    Fault("429 with an absurd time to wait", (RateLimitError("slow", retry_after=float("nan")),)),
    Fault("its own timeout", (LLMTimeoutError("late"),)),
    Fault("401", (AuthenticationError("401"),)),
    Fault("a spent quota", (QuotaExceededError("spent"),)),
    Fault("404, an unknown model", (NotFoundError("no such model"),)),
    Fault("400, a wrong request", (InvalidRequestError("bad schema"),)),
    Fault("a blocked input", (ContentFilterError("blocked"),)),
    Fault("an abort", (AbortError("aborted"),)),
    Fault("an error without a class of its own", (LLMError("odd", retryable=True), ValueError("no JSON"))),
    Fault("an error whose text cannot be read", (Unreadable(),)),
    Fault("input too large, always", (ContextLengthError("too many tokens"),)),
    Fault("input too large above 3,000 characters", (SIZE,)),
    Fault("the length of every answer is refused", (InvalidRequestError("max_output_tokens must be less than 8"),)),
    Fault("answers above 40 tokens are refused, no limit named", (ROOM,)),
    Fault("raises CancelledError", (asyncio.CancelledError(),)),
    Fault("raises SystemExit or GeneratorExit", (SystemExit(1), GeneratorExit())),
    Fault("an answer that raises when it is read", (Odd(ValueError("x")), Odd(asyncio.CancelledError()))),
    Fault("an answer of a wrong type", (None, 5, b"bytes", {"content": "text"})),
    Fault("empty answers", ("", SimpleNamespace(content=[]))),
    Fault("chat", (CHAT, "I'm sorry, I can't.")),
    Fault("summaries of something else", (ABOUT_ELSE,)),
    Fault("lone surrogates", ("bad \ud800 text about orders",)),
    Fault("two million characters", ("x" * 2_000_000,)),
    Fault("rambling, always cut off", (cut(WORDY),)),
    Fault("cut off before the first sentence", (cut("Goal"),)),
    Fault("absurd usage", (used(cost_usd="1e999999", input_tokens=10**400), used(output_tokens=-5, cost_usd="nan"))),
    Fault("slow: 20 s for each answer", (SLOW,)),
    Fault("hangs", (HANGS,)),
    Fault("hangs and ignores that it is cancelled", (DEAF,)),
    Fault("get_model_info hangs", (UNASKED,)),
    Fault("four errors, then a good answer", (*[ProviderUnavailableError("503")] * 4, GOOD)),
    Fault("two empty answers, then a good one", ("", "", GOOD)),
    Fault("a good answer, then an error", (GOOD, ProviderUnavailableError("503"))),
    Fault("one fault after the other", ("", ValueError("x"), CHAT, HANGS, None, cut(WORDY), asyncio.CancelledError())),
)
"""Every fault of the table."""


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
    if cost.wasted > cost.bound:
        broken.append(f"{cost.wasted} calls without a summary, the bound is {cost.bound}")
    if cost.longest > SHARED_WAIT + SECONDS / 2:
        broken.append(f"a request waited {cost.longest:.0f} s")
    return Cost(**{name: getattr(cost, name) for name in Cost.__slots__} | {"broken": tuple(dict.fromkeys(broken))})


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
