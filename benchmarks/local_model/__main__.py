"""`python -m benchmarks.local_model`: sessions with a small real model, played to this module and to peers.

Results are written after every contestant, as JSON (--save) and, if it is asked for (--page), as a page from that JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.field.report import machine
from benchmarks.local_model.contestants import MAX_OUTPUT, OURS, PEERS
from benchmarks.local_model.report import page
from benchmarks.local_model.server import Engine, EngineError, LocalServer, engine_python, serving
from benchmarks.local_model.session import BUDGET, Terms, play
from benchmarks.local_model.sessions import Session, airline, beam_chat, of_file
from benchmarks.real.chats import DATA, DataMissingError
from context_summarize.tokens.counter import TokenCounter

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and write what came of it; 1 where the engine cannot be started or nothing was played."""
    options = _parser().parse_args(arguments)
    if options.report:
        options.page.write_text(page(json.loads(options.report.read_text("utf-8"))), "utf-8")
        return 0
    run = _described(options)
    try:
        sessions = _sessions(options, run["missing"])
        for session in sessions:
            for name in options.contestants:
                _one(name, session, options, run)
                _write(run, options)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        _write(run, options)
    if not options.page:
        print(page(run))
    return 0 if run["played"] else 1


def _one(name: str, session: Session, options: argparse.Namespace, run: dict[str, Any]) -> None:
    """Play one session to one contestant, with an engine of its own."""
    print(f"{session.name}, {name}: {len(session.rows)} rows", file=sys.stderr, flush=True)
    terms = Terms(
        budget=options.budget, minutes=options.minutes, asks=not options.summaries_only, config=dict(options.config)
    )
    try:
        with _server(options) as server:
            played = asyncio.run(play(name, session, server, terms))
    except ImportError as error:
        run["missing"].append(f"{name} is not installed ({error}); make bench-model installs it")
        print(run["missing"][-1], file=sys.stderr)
        return
    run["played"].append(played.as_json())
    stopped = f", stopped: {played.stopped}" if played.stopped else ""
    print(f"  {played.played} rows in {played.seconds:.0f} s{stopped}", file=sys.stderr, flush=True)


@contextmanager
def _server(options: argparse.Namespace) -> Iterator[LocalServer]:
    if options.base_url:
        yield LocalServer(options.base_url, options.model, options.window)
    else:
        with serving(_engine(options)) as server:
            yield server


def _engine(options: argparse.Namespace) -> Engine:
    return Engine(window=options.window, python=options.python, weights=options.weights, threads=options.threads)


def _sessions(options: argparse.Namespace, missing: list[str]) -> list[Session]:
    """The sessions that can be played, cut to the asked length; what cannot is noted."""
    counter = TokenCounter()
    asyncio.run(counter.load())
    found = [] if options.only_chats else [airline()]
    try:
        found += [of_file(file) for file in options.chat] or [beam_chat(data=options.data)]
    except DataMissingError as error:
        missing.append(str(error))
        print(error, file=sys.stderr)
    return [session.cut(options.tokens, counter.count) for session in found]


def _described(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "date": date.today().isoformat(),
        "model": options.model,
        "threads": None if options.base_url else options.threads,
        "machine": machine(),
        "budget": options.budget,
        "window": options.window,
        "minutes": options.minutes,
        "max_output": MAX_OUTPUT,
        "missing": [],
        "played": [],
    }


def _write(run: dict[str, Any], options: argparse.Namespace) -> None:
    if options.save:
        options.save.write_text(json.dumps(run, indent=1, ensure_ascii=False), "utf-8")
    if options.page and run["played"]:
        options.page.write_text(page(run), "utf-8")


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_model", description=__doc__)
    parser.add_argument("--tokens", type=int, default=60_000, metavar="N", help="of each session, from its start")
    parser.add_argument("--budget", type=int, default=BUDGET, metavar="TOKENS", help="that one request may hold")
    parser.add_argument("--minutes", type=float, default=Terms().minutes, help="that one contestant may take")
    known = [OURS, *PEERS]
    parser.add_argument("--contestants", nargs="+", choices=known, default=known, metavar="NAME", help=str(known))
    parser.add_argument("--config", action="append", type=_setting, default=[], metavar="KEY=VALUE", help="a setting")
    parser.add_argument(
        "--chat", action="append", type=Path, default=[], metavar="FILE", help="instead of BEAM's first"
    )
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="of benchmarks.real.fetch")
    parser.add_argument("--summaries-only", action="store_true", help="the model answers no request but the last")
    parser.add_argument("--only-chats", action="store_true", help="without the recording")
    parser.add_argument("--save", type=Path, metavar="FILE", help="all figures and texts, as JSON")
    parser.add_argument("--page", type=Path, metavar="FILE", help="the page; without it, it is printed")
    parser.add_argument("--report", type=Path, metavar="JSON", help="only write --page anew, from a saved run")
    engine = parser.add_argument_group("the engine")
    engine.add_argument("--python", type=Path, default=engine_python(), help="an interpreter with its packages")
    engine.add_argument("--threads", type=int, default=Engine().threads, help="default: cores that are idle")
    engine.add_argument("--window", type=int, default=Engine().window, metavar="TOKENS", help="of one request")
    engine.add_argument("--weights", type=Path, metavar="FILE", help="another GGUF file")
    engine.add_argument("--base-url", metavar="URL", help="another server with OpenAI's interface, which runs already")
    engine.add_argument("--model", default=Engine().model, metavar="NAME", help="the name that it serves")
    return parser


if __name__ == "__main__":
    sys.exit(main())
