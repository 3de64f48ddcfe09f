"""The command line: a part of a recording played with the local model, and what its summaries took, as a table."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.local_model.server import Engine, EngineError, LocalServer, serving
from benchmarks.local_model.session import Played, play
from context_summarize.replay.session_files import read_session

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the session and print what came of it."""
    options = _parser().parse_args(arguments)
    rows = read_session(options.recording)[: options.rows]
    try:
        if options.base_url:
            server = LocalServer(options.base_url, options.model, options.window)
            played = asyncio.run(play(server, rows, budget=options.budget))
        else:
            with serving(_engine(options)) as server:
                played = asyncio.run(play(server, rows, budget=options.budget))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    if options.save:
        options.save.write_text(json.dumps(played.as_json(), indent=1, ensure_ascii=False), "utf-8")
    print(table(played))
    return 0


def table(played: Played) -> str:
    """The figures of a session, a line each."""
    calls = played.calls
    answered = [call for call in calls if call.wrote]
    read, cached = sum(call.read for call in calls), sum(call.cached for call in calls)
    lines = [
        f"{played.rows} rows, {played.requests} requests: {played.seconds:.0f} s, {played.waited:.0f} s of them waited",
        f"{len(calls)} calls, {len(answered)} answered; {played.summaries} summaries",
        f"refused by validation: {_counts(played.refused)}; no summary: {_counts(played.failures)}",
        f"last view: {played.in_view} summaries, {played.fallbacks} of them fallbacks",
        f"tokens read: {read}, of them {cached} from the engine's cache; written: {sum(call.wrote for call in calls)}",
    ]
    if answered:
        seconds = [call.seconds for call in answered]
        lines.append(f"seconds an answer: {fmean(seconds):.0f} (at most {max(seconds):.0f})")
    return "\n".join(lines)


def _counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(counted.items())) or "none"


def _engine(options: argparse.Namespace) -> Engine:
    given = {"threads": options.threads} if options.threads else {}
    return Engine(window=options.window, python=options.python, weights=options.weights, **given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_model", description=__doc__)
    parser.add_argument("--recording", type=Path, default=ROOT / "examples" / "airline-desk.jsonl")
    parser.add_argument("--rows", type=int, default=150, metavar="N", help="of the recording, from its start")
    parser.add_argument("--budget", type=int, default=6_000, metavar="TOKENS", help="that one request may hold")
    parser.add_argument("--save", type=Path, metavar="FILE", help="all calls with their texts, as JSON")
    engine = parser.add_argument_group("the engine")
    engine.add_argument("--python", type=Path, default=Path(sys.executable), help="an interpreter with its packages")
    engine.add_argument("--threads", type=int, help="default: cores that are idle")
    engine.add_argument("--window", type=int, default=Engine().window, metavar="TOKENS", help="of one request")
    engine.add_argument("--weights", type=Path, metavar="FILE", help="another GGUF file")
    engine.add_argument("--base-url", metavar="URL", help="another server with OpenAI's interface, which runs already")
    engine.add_argument("--model", default=Engine().model, metavar="NAME", help="the name that it serves")
    return parser


if __name__ == "__main__":
    sys.exit(main())
