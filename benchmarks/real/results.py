"""The cells of the comparison: which there are, which are kept and still hold, and running those that lack."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path

from benchmarks.field.contestants import entries
from benchmarks.field.model import Traits
from benchmarks.field.result import Prices
from benchmarks.real.chats import Chat
from benchmarks.real.play import RECALL, Cell, play
from benchmarks.real.sets import SETS, chats

ROOT = Path(__file__).parents[2]
_MEASURING = (
    *("field/measure.py", "field/result.py", "field/model.py", "field/views.py", "field/virtual.py", "peers/base.py"),
    *("real/play.py", "real/scoring.py", "real/recall.py", "real/pins.json"),
    *("real/chats.py", "real/beam.py", "real/locomo.py", "real/lost.py", "real/pi.py", "real/recordings.py"),
)
_OURS = ("context_summarize", "prompts", "benchmarks/peers/ours.py", "benchmarks/field/contestants.py")


@dataclass(frozen=True, slots=True)
class Key:
    """One contestant, or recall, in one chat."""

    set: str
    chat: str
    contestant: str


class Kept:
    """Cells in a folder, a file each, with a print of the code and the versions that made them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: Key) -> Cell | None:
        """The cell, unless it is not there or other code made it."""
        try:
            first, _, rest = self._path(key).read_text("utf-8").partition("\n")
        except FileNotFoundError:
            return None
        return Cell.from_json(rest) if first == made_by(key.contestant) else None

    def put(self, key: Key, cell: Cell) -> None:
        """Keep it; a cut run never leaves half a file."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(f"{made_by(key.contestant)}\n{cell.as_json()}", "utf-8")
        part.replace(path)

    def _path(self, key: Key) -> Path:
        return self._folder / key.set / key.chat / f"{key.contestant}.json"


@functools.cache
def made_by(contestant: str) -> str:
    """A hash of what a contestant's figures hang on: its own code or version, and the code that measures."""
    paths = [ROOT / "benchmarks" / name for name in _MEASURING]
    entry = entries().get(contestant)
    versions: list[str] = []
    if contestant == RECALL or (entry is not None and entry.kind == "ours"):
        paths += [path for name in _OURS for path in _files(ROOT / name)]
        versions.append(json.dumps(dict(getattr(entry.make, "config", {})) if entry else {}, sort_keys=True))
    elif entry is not None:
        paths.append(ROOT / "benchmarks" / "peers" / f"{entry.make.__module__.rpartition('.')[2]}.py")
        versions += [f"{name} {_version(name)}" for name in entry.make.packages]
    found = hashlib.sha256("\n".join(versions).encode())
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(one for one in path.rglob("*") if one.is_file() and one.suffix not in (".pyc", ".pyo"))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def keys(sets: Mapping[str, Sequence[Chat]], contestants: Sequence[str]) -> list[Key]:
    """All cells: recall and the first contestants of all sets before the last ones of any, so that a cut run compares.

    Args:
        sets: chats by the name of their set.
    """
    order = [RECALL, *contestants]
    return [Key(name, chat.name, one) for one in order for name, of_set in sets.items() for chat in of_set]


@dataclass(slots=True)
class Run:
    """What came of running cells."""

    cells: dict[Key, Cell]
    missing: dict[Key, str]
    """Why a cell was not run."""


def workers(at_once: int) -> Executor:
    """Processes that play cells. One that was forked would share this process' event loops and threads."""
    return ProcessPoolExecutor(at_once, mp_context=get_context("spawn"))


def run(
    wanted: Sequence[Key],
    kept: Kept,
    pool: Executor,
    *,
    seconds: float,
    at_once: int,
    traits: Traits,
    prices: Prices,
    say: Callable[[str], None],
) -> Run:
    """The wanted cells: kept ones, and new ones as far as `seconds` of real time go."""
    done = {key: cell for key in wanted if (cell := kept.get(key)) is not None}
    left = [key for key in wanted if key not in done][::-1]
    say(f"{len(done)} of {len(wanted)} cells are kept already")
    ends, missing = time.monotonic() + seconds, dict[Key, str]()
    under_way: dict[Future[Cell], Key] = {}
    while under_way or left:
        while left and len(under_way) < at_once and time.monotonic() < ends:
            key = left.pop()
            under_way[pool.submit(_cell, key, traits, prices)] = key
        if not under_way:
            break
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            key = under_way.pop(future)
            _take(key, future, kept, done, missing, say)
    missing |= dict.fromkeys(left, f"not begun within {seconds / 60:.0f} minutes" if seconds else "not kept")
    return Run(done, missing)


def _take(
    key: Key,
    future: Future[Cell],
    kept: Kept,
    done: dict[Key, Cell],
    missing: dict[Key, str],
    say: Callable[[str], None],
) -> None:
    try:
        cell = future.result()
    except Exception as error:  # noqa: BLE001 (whatever a peer raises is a line of the report)
        missing[key] = f"{type(error).__name__}: {error}".partition("\n")[0]
        say(f"{key.contestant}, {key.chat}: {missing[key]}")
        return
    done[key] = cell
    kept.put(key, cell)
    say(f"{key.contestant}, {key.chat}: {cell.result.seconds if cell.result else 0:.0f} s")


def _cell(key: Key, traits: Traits, prices: Prices) -> Cell:
    """In a worker."""
    chat = next(one for one in chats(key.set) if one.name == key.chat)
    return play(chat, key.contestant, SETS[key.set].budget, traits, prices)
