"""Asks a real model what a session still knows: a recording, questions about its folded parts, and graded answers.

    python -m benchmarks.probes --provider provider-openai
    python -m benchmarks.probes --provider openai-compatible --base-url http://127.0.0.1:8000/v1 --model NAME
    python -m benchmarks.probes --provider local-model --rows 31 --window 4096 --max-output 1024

The recording is played through this module once, with summaries written by the provider, in a window of 40,000 tokens
(--window). Every question of probes.json is then asked of the same provider twice: over the view that came out, and
over the whole history, where that fits the provider's own window. Exact values (ids, amounts, names) are graded by
code: the share that the answer holds. The rest is graded by the provider, which is shown a reference and answers with
a JSON object. docs/benchmarks-probes.md says more. It costs real tokens: some 22 summaries, 19 questions a side, and
7 gradings a side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.examiner import KINDS, Answer, Examiner, Probe, read_probes
from benchmarks.local_model.server import EngineError
from benchmarks.probed import add_options, asked_provider, settings_of
from context_summarize import Config, ContextSummarizeError, SummarizingContextManager
from context_summarize.cli.options import MAX_OUTPUT, WINDOW, read_config
from context_summarize.cli.terminal import Refused
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.providers.counted import CountedProvider
from context_summarize.replay.session_files import read_session
from context_summarize.session.host import Window, request_budget
from context_summarize.stores.memory import MemoryStore
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

ROOT = Path(__file__).parents[1]
PROBES = Path(__file__).with_name("probes.json")


@dataclass(frozen=True, slots=True)
class Side:
    """All answers over one state of the conversation."""

    tokens: int
    answers: tuple[Answer, ...] = ()
    skipped: str = ""
    """Why nothing was asked."""

    def score(self, probes: Sequence[Probe]) -> float | None:
        """Mean over those of the probes that have a score, 0…1; None where none has."""
        wanted = {probe.id for probe in probes}
        scores = [one.score for one in self.answers if one.probe in wanted and one.score is not None]
        return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True, slots=True)
class Report:
    """What one run saw."""

    provider: str
    recording: str
    messages: int
    budget: int
    """Tokens that a view of the compacted session may hold."""
    probes: tuple[Probe, ...]
    folded: frozenset[str]
    """Ids of the probes whose rows all stand behind summaries."""
    compacted: Side
    whole: Side
    usage: dict[str, int] = field(default_factory=dict)
    """Calls, and tokens as the provider counts them."""


# --- the run --------------------------------------------------------------------------------------------------------


async def run(
    rows: Sequence[JsonRow],
    probes: Sequence[Probe],
    provider: Any,
    *,
    name: str,
    source: str = "",
    config: Config | None = None,
    token_budget: int | None = None,
) -> Report:
    """Play the rows, ask and grade on both sides.

    Args:
        token_budget: tokens of the compacted session's requests; None = what the provider's window gives.
    """
    config = config or Config()
    counted = CountedProvider(provider)
    counter = TokenCounter()
    await counter.load()
    budget = await request_budget(config, token_budget, counted)
    room = await request_budget(Config(safety_margin=config.safety_margin), None, counted)
    view = await _played(rows, config, counted, budget)
    everything = await _unfolded(rows)
    examiner = Examiner(counted, sorted({made.name for row in rows for made in analyse(row).calls}))

    size = sum(measure(row, counter.count) for row in everything)
    if size > room:
        whole = Side(size, skipped=f"{size:,} tokens do not fit the {room:,} that {name} takes")
    else:
        whole = Side(size, await examiner.examine(everything, probes))
    compacted = Side(sum(measure(row, counter.count) for row in view), await examiner.examine(view, probes))
    usage = {
        "calls": counted.calls,
        "failed_calls": counted.failed,
        "input_tokens": counted.input_tokens,
        "output_tokens": counted.output_tokens,
    }
    folded = frozenset(probe.id for probe in probes if _is_folded(probe, view))
    return Report(name, source, len(rows), budget, tuple(probes), folded, compacted, whole, usage)


async def _played(rows: Sequence[JsonRow], config: Config, provider: Any, budget: int) -> list[JsonRow]:
    """The view after all rows, with a request before every assistant row, as an agent loop makes them."""
    manager = SummarizingContextManager(config=config, store=MemoryStore())
    try:
        for row in rows:
            if row["role"] == "assistant":
                await manager.get_messages_for_request(budget, provider=provider)
            await manager.add_message(row)
        return await manager.get_messages_for_request(budget, provider=provider)
    finally:
        await manager.close()


async def _unfolded(rows: Sequence[JsonRow]) -> list[JsonRow]:
    """All rows, in the shape in which a view has them."""
    manager = SummarizingContextManager(store=MemoryStore())
    try:
        await manager.set_messages(rows)
        return await manager.get_messages_for_request(sys.maxsize)
    finally:
        await manager.close()


def _is_folded(probe: Probe, view: Sequence[JsonRow]) -> bool:
    spans = [row["metadata"]["messages"] for row in view if "messages" in (row.get("metadata") or {})]
    return any(first <= probe.rows[0] for first, _ in spans) and any(probe.rows[1] <= last for _, last in spans)


# --- what is printed ------------------------------------------------------------------------------------------------


def as_data(report: Report) -> dict[str, Any]:
    """The report for machines; scores by kind and in all are 0…1."""
    data = asdict(report)
    data["folded"] = sorted(report.folded)
    for side in ("compacted", "whole"):
        told: Side = getattr(report, side)
        data[side]["score"] = told.score(report.probes)
        data[side]["by_kind"] = {kind: told.score(_of(kind, report)) for kind in KINDS}
    return data


def _of(kind: str, report: Report) -> list[Probe]:
    return [probe for probe in report.probes if probe.kind == kind]


def table(report: Report) -> Table:
    """A line a question, then the means."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("Question", no_wrap=True)
    made.add_column("Kind", no_wrap=True)
    made.add_column("Rows", justify="right", no_wrap=True)
    made.add_column("Folded")
    made.add_column("Compacted", justify="right")
    made.add_column("Whole", justify="right")
    sides = (report.compacted, report.whole)
    for probe in report.probes:
        folded = "yes" if probe.id in report.folded else "no"
        scores = [_percent(side.score([probe])) for side in sides]
        made.add_row(probe.id, probe.kind, "{}-{}".format(*probe.rows), folded, *scores)
    made.add_section()
    for kind in (*KINDS, "all"):
        probes = report.probes if kind == "all" else _of(kind, report)
        made.add_row(f"mean of {len(probes)}", kind, "", "", *(_percent(side.score(probes)) for side in sides))
    return made


def _percent(score: float | None) -> str:
    return "-" if score is None else f"{score:.0%}"


def print_report(report: Report, out: Console) -> None:
    """The table of scores, what was not answered in full, and what the calls took."""
    out.print(f"{report.recording}: {report.messages:,} messages, answered by {report.provider}", markup=False)
    out.print(table(report))
    out.print(f"Compacted: {report.compacted.tokens:,} tokens of {report.budget:,} allowed.")
    whole = f"not asked: {report.whole.skipped}" if report.whole.skipped else f"{report.whole.tokens:,} tokens"
    out.print(f"Whole history: {whole}.", soft_wrap=True, markup=False)
    for title, side in (("Compacted", report.compacted), ("Whole", report.whole)):
        for answer in side.answers:
            if answer.score != 1:
                said = f"{title}, {answer.probe} ({_percent(answer.score)}): {answer.note}"
                out.print(said, soft_wrap=True, markup=False)
        if unscored := sum(answer.score is None for answer in side.answers):
            out.print(
                f"{title}: {unscored} of {len(side.answers)} answers have no score and are left out of the means."
            )
    usage = report.usage
    out.print(f"{usage['calls']} calls, {usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out")


# --- the command line -----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print the scores; 2 where the options or the provider cannot be used."""
    options = _parser().parse_args(arguments)
    out = Console(highlight=False)
    try:
        report = asyncio.run(_run(options))
    except (ContextSummarizeError, EngineError, Refused, OSError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(as_data(report), ensure_ascii=False))
    else:
        print_report(report, out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--window", type=int, default=WINDOW, metavar="TOKENS", help=f"of the session [{WINDOW}]")
    parser.add_argument("--max-output", type=int, default=MAX_OUTPUT, metavar="TOKENS", help=f"[{MAX_OUTPUT}]")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of the module")
    parser.add_argument("--recording", type=Path, default=ROOT / "examples" / "airline-desk.jsonl", metavar="FILE")
    parser.add_argument("--rows", type=int, metavar="N", help="only the first ones, and the questions about them")
    parser.add_argument("--questions", type=Path, default=PROBES, metavar="FILE", help="in the form of probes.json")
    parser.add_argument("--json", action="store_true", help="print one JSON object, answers included")
    return parser


async def _run(options: argparse.Namespace) -> Report:
    config = read_config(settings_of(options), None)
    rows = read_session(options.recording)[: options.rows]
    probes = [probe for probe in read_probes(options.questions) if probe.rows[1] <= len(rows)]
    budget = Window(options.window, options.max_output).budget(config.safety_margin)
    async with asked_provider(options) as (name, provider):
        return await run(
            rows, probes, provider, name=name, source=options.recording.name, config=config, token_budget=budget
        )


if __name__ == "__main__":
    sys.exit(main())
