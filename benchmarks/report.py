"""Runs cells in processes of their own, and writes their figures as JSON and as one table."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import context_summarize

Figures = dict[str, Any]
Cell = Callable[..., Figures]
_SHOW: dict[str, Callable[[Any], str]] = {
    "facts": "{:.0%}".format,
    "cached": "{:.1%}".format,
    "waiting": "{:.1%}".format,
    "dollars_haiku": "{:.3f}".format,
    **dict.fromkeys(("of_events", "of_control", "of_sentences"), "{:.0%}".format),
}
"""Formats of figures that are no plain numbers."""


def run_all(
    cell: Cell, wanted: Sequence[tuple[Any, ...]], jobs: int = 2, seconds: int = 600, sealed: bool = False
) -> list[Figures]:
    """Returns the figures of each cell, in order; if a cell raises, its error, under `missing`.

    Args:
        cell: a function of a module; each call has a fresh process.
        wanted: the arguments of each call.
        seconds: real ones, after which a cell is given up.
        sealed: reports only the type of an error: its text may hold some of the data.
    """
    found: list[Figures] = []
    started = time.monotonic()
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with pool:
        under_way = [pool.submit(_quietly, cell, arguments, seconds) for arguments in wanted]
        for arguments, future in zip(wanted, under_way, strict=True):
            name = " ".join(map(str, arguments))
            try:
                found.append(future.result())
                said = ""
            except Exception as error:  # noqa: BLE001 (a peer may raise anything)
                said = type(error).__name__ + ("" if sealed else f": {error}".partition("\n")[0])
                found.append({"cell": name, "missing": said})
            print(f"{time.monotonic() - started:5.0f} s  {name}  {said}", file=sys.stderr, flush=True)
    return found


def _quietly(cell: Cell, arguments: tuple[Any, ...], seconds: int) -> Figures:
    """Runs a cell without logs and warnings: contestants log every failure, and the figures count them."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    return cell(*arguments)


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise TimeoutError("took too long")


def table(found: Sequence[Figures], columns: Sequence[str]) -> str:
    """Returns a Markdown table of the columns that any line has."""
    lines = [one for one in found if "missing" not in one]
    columns = [name for name in columns if any(name in one for one in lines)]
    head = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    rows = [f"| {' | '.join(shown(name, one.get(name)) for name in columns)} |" for one in lines]
    missing = [f"missing: {one['cell']}: {one['missing']}" for one in found if "missing" in one]
    return "\n".join([*head, *rows, *missing])


def shown(name: str, value: Any) -> str:
    """Returns a figure as the table shows it."""
    if value is None:
        return "–"
    if name in _SHOW:
        return _SHOW[name](value)
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def command(
    module: str,
    about: str,
    choices: Mapping[str, tuple[Iterable[str], Sequence[str]]],
    run: Callable[..., list[Figures]],
    columns: Sequence[str],
    halves: bool = False,
) -> int:
    """Runs a command line: plays what its options name, prints and saves the table. Returns 1 if a cell is missing.

    Args:
        choices: for each option the names that it takes, and its default.
        run: gets what each option names, and `jobs`.
        halves: `run` also gets `sealed`, which plays the sealed half of the data.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=about)
    for option, (known, default) in choices.items():
        names = ", ".join(known).replace("%", "%%")
        told: dict[str, Any] = {"choices": list(known), "default": list(default), "metavar": "NAME", "help": names}
        parser.add_argument(f"--{option}", nargs="+", **told)
    if halves:
        parser.add_argument("--sealed", action="store_true", help="play the sealed half, and print sums alone")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all figures into this JSON file")
    given = vars(parser.parse_args())
    path = given.pop("save")
    try:
        found = run(**given)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(found, columns))
    save(path, f"{module} sealed" if given.get("sealed") else module, found)
    return int(any("missing" in one for one in found))


def save(path: Path | None, name: str, found: Sequence[Figures]) -> None:
    """Merges figures into a JSON file, one a line, under their name, with the day, the commit and the command."""
    if path is not None:
        kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
        asked = f"python -m benchmarks.{name.replace(' ', ' --')}"
        day = date.today().isoformat()
        kept[name] = {"date": day, "commit": _commit(), "command": asked, "figures": rounded(found)}
        parts = []
        for one, part in kept.items():
            figures = ",\n".join(map(json.dumps, part.pop("figures")))
            parts.append(f'"{one}": {json.dumps(part)[:-1]}, "figures": [\n{figures}\n]}}')
        path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _commit() -> str | None:
    """Returns the commit of the checkout that holds the measured package, or None."""
    checkout = Path(context_summarize.__file__).parents[1]
    if not (checkout / ".git").exists():
        return None
    asked = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def rounded(value: Any) -> Any:
    """Returns figures with four significant digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value
