"""`python -m benchmarks.false_lines`: how many lines of the thread say what their messages do not?

Sessions are played to this module. Each different line of the thread is looked up in the history, by the form that
docs/design.md promises and without the code that wrote it. A line is *false* if the message that it names does not hold
the quoted parts in this order; if somebody else spoke; if numbers do not ascend; if the words behind the arrow did not
end the turn so far; if no earlier call holds a name; or if its form is unknown. False lines of open data are printed.

A *correction* is a pair: a quoted sentence of the user, and a later one that takes something back and repeats a name or
figure of it. It is *uncorrected* if the request does not show the later sentence.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.cuts import fold, sentences_of
from benchmarks.field import SUMMARISERS
from benchmarks.peers import EVERYONE
from benchmarks.real import beam, coding, half
from benchmarks.real.checkpoints import SET, load
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import shown
from benchmarks.sessions import Session, recorded
from benchmarks.tokens import Row, calls_of, text_of
from benchmarks.words import identifiers, places

SETS: Mapping[str, tuple[int, Callable[[bool], list[Session]]]] = {
    "entire": (40_000, lambda sealed: [load(path, sealed).session for path in half(SET, sealed)]),
    "coding": (40_000, coding.load_all),
    "BEAM": (16_000, lambda sealed: beam.load_all("500K" if sealed else "100K", sealed)),
    "airline": (16_000, lambda sealed: [] if sealed else [Session(name="airline", rows=tuple(recorded()))]),
}
"""The window and the sessions of each set."""
COLUMNS = ("set", "sessions", "lines", "false", "corrections", "uncorrected")
_SAID = re.compile(r"#(\d+) (\(in a result\) )?(.*)")
_ENDED = re.compile(r"→ #(\d+) (.+)")
_LEFT_OUT = re.compile(r"\[…\]|\[redacted: [\w ]+\]")
_CORRECTION = re.compile(
    r"\b(?:not(?! sure| be\b| enough)|no longer|instead|actually|wrong|rather|sorry|oops|never mind|undo|changed?)\b",
    re.I,
)


class Watch:
    """Checks the thread of every request of a session."""

    def __init__(self, session: Session) -> None:
        self.is_true: dict[str, bool] = {}
        self.is_corrected: dict[str, bool] = {}
        self._rows = [row for row in session.rows if row["role"] != "system"]
        self._texts = [_flat(text_of(row)) for row in self._rows]
        self._called = [
            _flat(*(one for call in calls_of(row) for one in _strings(call["arguments"]))) for row in self._rows
        ]

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        for text in map(text_of, view):
            if text.startswith("[Thread of messages"):
                first, *lines, _ = text.split("\n")
                end = int(re.findall(r"to (\d+)", first)[0])
                for line, is_true in self._looked_up(lines, end):
                    self.is_true[line] = self.is_true.get(line, True) and is_true
                self._correct(lines, end, fold(shown(view)))

    def _looked_up(self, lines: Sequence[str], end: int) -> Iterator[tuple[str, bool]]:
        """Yields each line but headings and counts, and whether it is true."""
        last = 0
        for line in (one.removeprefix("> ") for one in lines):
            heading, _, items = line.partition(": ")
            if re.match(r"\([\d,]+ more", line):
                continue
            if heading.startswith("Names in earlier calls"):
                yield line, all(any(name in call for call in self._called[:end]) for name in items.split(", "))
            elif ended := _ENDED.fullmatch(line):
                number = int(ended[1])
                yield line, self._ends(last, number, end) and self._says(number, "assistant", ended[2])
            else:
                said = _SAID.fullmatch(line)
                before, last = last, int(said[1]) if said else last
                is_said = said and (said[3] == "[…]" or self._says(last, "tool" if said[2] else "user", said[3]))
                yield line, bool(is_said and before < last <= end)

    def _says(self, number: int, role: str, quoted: str) -> bool:
        row = self._rows[number - 1]
        return row["role"] == role and _stands(quoted, self._texts[number - 1])

    def _ends(self, user: int, number: int, end: int) -> bool:
        """Returns True if this message ended the turn that a message of the user began, as far as the thread goes."""
        roles = [row["role"] if self._texts[at] else "" for at, row in enumerate(self._rows[:end])]
        behind = next((role for role in roles[number:] if role in ("user", "assistant")), "user")
        return user < number and "user" not in roles[user:number] and behind == "user"

    def _correct(self, lines: Sequence[str], end: int, view: str) -> None:
        """Finds later sentences that take back something of a quoted one."""
        for number, _, quoted in (said.groups() for said in map(_SAID.fullmatch, lines) if said):
            values = identifiers(quoted) if self._rows[int(number) - 1]["role"] == "user" else ()
            for sentence in filter(_CORRECTION.search, sentences_of(self._rows[int(number) : end]) if values else ()):
                if any(places(sentence, one) for one in values):
                    pair = f"#{number} <- {sentence}"
                    self.is_corrected[pair] = self.is_corrected.get(pair, True) and fold(sentence) in view


def _flat(*texts: str) -> str:
    return " ".join(" ".join(texts).split())


def _strings(value: Any) -> Iterator[str]:
    """Yields each value in the arguments of a call."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)
    else:
        yield str(value)


def _stands(quoted: str, text: str) -> bool:
    """Returns True if a text holds the parts of a quotation in this order."""
    at = 0
    for part in map(str.strip, _LEFT_OUT.split(quoted)):
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def cell(name: str, sealed: bool = False) -> Figures:
    """Plays the sessions of one set and counts their lines."""
    budget, sessions = SETS[name]
    found = Counter[str]()
    for session in sessions(sealed):
        watch = Watch(session)
        play(EVERYONE["Ours"], replace(session, budget=budget), SUMMARISERS["extracts"], look=watch)
        false = [line for line, is_true in watch.is_true.items() if not is_true]
        missing = [pair for pair, is_shown in watch.is_corrected.items() if not is_shown]
        found.update({"sessions": 1, "lines": len(watch.is_true), "false": len(false)})
        found.update({"corrections": len(watch.is_corrected), "uncorrected": len(missing)})
        for line in [] if sealed else [*false, *missing]:
            print(session.name, line, file=sys.stderr)
    return {"set": name, **found}


def measured(sets: Sequence[str], jobs: int, sealed: bool) -> list[Figures]:
    return run_all(cell, [(name, sealed) for name in sets], jobs, seconds=3_600, sealed=sealed)


if __name__ == "__main__":
    sys.exit(command("false_lines", __doc__, {"sets": (SETS, list(SETS))}, measured, COLUMNS, halves=True))
