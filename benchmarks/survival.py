"""`python -m benchmarks.survival`: what does a view hold after one, five and ten compactions in a row?

A seed places items of four kinds in the first part of the recorded desk, before anybody compacts. A compaction is a
request whose view does not continue the one before and has fewer tokens. Each share is the mean of the seeds, with the
lowest and the highest. Summarisers that extract know nothing of the items: a model would keep more instructions and
requests in its prose. *session* has the tokens before the last compaction, *view* the mean of those after each.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from benchmarks.field import SUMMARISERS
from benchmarks.peers import BEST, EVERYONE
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import shown
from benchmarks.sessions import Session, called, recorded
from benchmarks.tokens import Row, count, measure, said
from benchmarks.words import instruction_kept, is_near, places, significant_words

_TIMES, _EACH = 10, 12
"""Compactions in a row, and items of a kind."""
_FIRST_PART = 150
"""Rows of the desk, some 16,000 tokens: nobody compacts before 25,000."""
SEEDS = ("0", "1", "2")
COLUMNS = ("summariser", "contestant", "kind", "items", "after 1", "after 5", "after 10", "session", "view")
ITEMS = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
"""Each line has a kind and a text. Every # becomes a digit; a value follows its words."""
KINDS = ("instruction", "request", "file", "value")
Item = tuple[str, str, str]
"""Its kind, its text, and the value that the text is about."""


class Enough(Exception):
    """Ends a session."""


def stands(item: Item, view: str) -> bool:
    """Returns True if the text of a view holds an item."""
    kind, text, value = item
    if kind == "file":
        return bool(places(view, text))
    return is_near(view, value, significant_words(text)) if value else instruction_kept(view, significant_words(text))


def planted(seed: int, copies: int = 3) -> tuple[Session, list[Item]]:
    """Returns the desk with items in its first part (messages, calls and results), and the items."""
    chance = random.Random(seed)
    rows = recorded(copies)
    prose = [at for at in range(_FIRST_PART) if isinstance(rows[at]["content"], str)]
    spots = {role: [at for at in prose if rows[at]["role"] == role] for role in ("user", "assistant")}
    lines = [line for kind in KINDS for line in chance.sample([one for one in ITEMS if one.startswith(kind)], _EACH)]
    items, after = [], dict[int, list[Row]]()
    for number, line in enumerate(lines):
        kind, _, told = re.sub("#", lambda _: str(chance.randint(1, 9)), line).partition(": ")
        text, _, value = told.partition(" = ")
        items.append((kind, text, value))
        if kind == "file" or (value and number % 2):
            after.setdefault(chance.choice(spots["user"]), []).extend(_call(90_000 + number, text, value))
            continue
        at = chance.choice(spots["assistant" if value else "user"])
        words = f"The {text} is {value}." if value else text
        rows[at] = {**rows[at], "content": " ".join(chance.sample([rows[at]["content"], words], 2))}
    whole = tuple(new for at, row in enumerate(rows) for new in (row, *after.get(at, ())))
    return Session(name=f"survival-{seed}", rows=whole), items


def _call(number: int, text: str, value: str) -> list[Row]:
    if value:
        record = {"about": text, "status": "confirmed", "value": value, "source": "register"}
        return called(number, "find_record", {"query": text}, json.dumps(record))
    if number % 2:
        return called(number, "edit_file", {"path": text, "old": "draft", "new": "final"}, "1 place changed.")
    return called(number, "write_file", {"path": text, "content": "To be filled."}, f"{text} is written.")


def is_compacted(before: Sequence[Row], view: Sequence[Row]) -> bool:
    """Returns True if a view does not continue the one before and has fewer tokens."""
    continued = [said(row) for row in view[: len(before)]] == [said(row) for row in before]
    return not continued and sum(measure(row, count) for row in view) < sum(measure(row, count) for row in before)


class Watch:
    """Finds the first ten compactions of a session, and the share of each kind that the view holds after each."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.kept: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.sizes: list[int] = []
        self.fed, self._items = 0, items
        self._before: list[Row] = []

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        before, self._before = self._before, list(view)
        if not is_compacted(before, view):
            return
        text, size = shown(view), sum(measure(row, count) for row in view)
        for kind, shares in self.kept.items():
            shares.append(fmean(stands(item, text) for item in self._items if item[0] == kind))
        self.sizes, self.fed = [*self.sizes, size], fed
        if len(self.sizes) == _TIMES:
            raise Enough


def cell(summariser: str, contestant: str, seed: str) -> Figures:
    """Plays one contestant in one session."""
    session, items = planted(int(seed))
    watch = Watch(items)
    with suppress(Enough):
        play(EVERYONE[contestant], session, SUMMARISERS[summariser], look=watch)
    if len(watch.sizes) < _TIMES:
        raise ValueError(f"made {len(watch.sizes)} compactions only")
    read = sum(measure(row, count) for row in session.rows[: watch.fed])
    return {"who": (summariser, contestant), "kept": watch.kept, "session": read, "view": fmean(watch.sizes)}


def measured(summarisers: Sequence[str], only: Sequence[str], seeds: Sequence[str], jobs: int) -> list[Figures]:
    """Returns a line for each contestant and kind, then the missing cells."""
    names = [(how, who) for how in summarisers for who in only]
    found = run_all(cell, [(*name, seed) for name in names for seed in seeds], jobs)
    by_name = [[one for one in found if one.get("who") == name] for name in names]
    lines = [_line(cells, kind) for cells in by_name if cells for kind in KINDS]
    return [*lines, *(one for one in found if "missing" in one)]


def _line(cells: Sequence[Figures], kind: str) -> Figures:
    shares = zip(*(one["kept"][kind] for one in cells), strict=True)
    curve = [(fmean(some), min(some), max(some)) for some in shares]
    told = {f"after {at}": "{:.0%} ({:.0%} to {:.0%})".format(*curve[at - 1]) for at in (1, 5, _TIMES)}
    sizes = {key: fmean(one[key] for one in cells) for key in ("session", "view")}
    who = dict(zip(COLUMNS, (*cells[0]["who"], kind, _EACH * len(cells)), strict=False))
    return {**who, **told, **sizes, "curve": curve}


if __name__ == "__main__":
    choices = {"summarisers": (SUMMARISERS, ["extracts"]), "only": (EVERYONE, ["Ours", *BEST]), "seeds": (SEEDS, SEEDS)}
    sys.exit(command("survival", __doc__, choices, measured, COLUMNS))
