"""`python -m benchmarks.cuts`: where a large model summarised a coding session, what do its summary and our view hold?

Claude Code's published sessions (`benchmarks.real.checkpoints`) hold the model's own summary at each compaction. The
same rows are played to a contestant up to each of these *cuts*; nothing is compacted beyond what it does by itself.
Its next request is judged there, a line for each text; one that the contestant lost holds nothing.

* *model*: the model's summary. *notes*: our row of notes alone. *view*: the whole request. *newest*: the newest rows of
  the view's size. *both*: the model's summary, and the newest rows that then find room in the view's size. *written*:
  rows that no history row says, so summaries, notes, and rows that are shortened.

An *event* is an identifier in a short argument of a call between this cut and the next one, last shown before the cut;
values that a tool's schema lists are none. A path has one spelling, from the session's folder on. *of_events* is the
share that stands in the text, *of_control* that of the identifiers of the same rows that no later call names. *unsaid*
events stand in no verbatim row of the view. *read_again* are files that one of the 20 calls behind the cut reads, and
one before it had read. *sentences* are the user's own before the cut, *signed* those that hold a word of instructions;
they are compared by their letters and digits alone. *tokens* is the mean over the *rows*, the cuts that have the text.
*dollars* are those of all sessions, each up to its last cut.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import fmean

from benchmarks.field import SUMMARISERS
from benchmarks.peers import BEST, EVERYONE
from benchmarks.prices import DOLLARS, dollars
from benchmarks.prospective import SHORT, WINDOWS
from benchmarks.real import half
from benchmarks.real.checkpoints import SET, Recorded, load
from benchmarks.real.coding import Cut
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import newest, shown
from benchmarks.tokens import Row, arguments_of, calls_of, count, measure, said, text_of
from benchmarks.words import identifiers, places

_LISTED = {"model", "output_mode", "status", "subagent_type", "taskId", "type"}
"""Arguments whose values a tool's schema lists or numbers, such as `in_progress`."""
_NOTES = "[Notes on messages"
"""How the row of notes begins."""
_BEHIND = 20
"""Calls behind a cut among which a file counts as read again."""
_TYPED = 1_000
"""Characters of a message of the user's own words; longer ones hold pasted text, or a plan that the host filled in."""
_ALIEN = re.compile(r"(?s)```.*?(?:```|\Z)|<([\w-]+)>.*?</\1>|(?:(?<=\n)|\A)[ \t]*>[^\n]*")
"""What is fenced, tagged or quoted."""
_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_LEAST = 8
"""Letters and digits of a sentence; "ok" says nothing."""
_SIGN = re.compile(
    r"(?i)\b(?:always|never|don['’]?t|do not|must|make sure|ensure|from now on|only|prefer|avoid|instead|should not)\b"
)
_TEXTS = ("model", "notes", "view", "newest", "both", "written")
_OF_PEERS = ("view", "newest")
_KINDS = ("events", "control", "unsaid", "read_again", "sentences", "signed")
_MEANS = ("of_control", "tokens")
COLUMNS = (
    *("window", "summariser", "contestant", "text", "sessions", "cuts", "rows", "tokens", "events", "of_events"),
    *("of_control", "unsaid", "of_unsaid", "read_again", "of_read_again"),
    *("sentences", "of_sentences", "signed", "of_signed", *DOLLARS),
)


class Judge:
    """Looks at the request at each cut of a session."""

    def __init__(self, recorded: Recorded) -> None:
        self.counted = {text: Counter[str]() for text in _TEXTS}
        self.each: dict[str, dict[str, list[float]]] = {text: {name: [] for name in _MEANS} for text in _TEXTS}
        self._rows, self._folder = recorded.session.rows, recorded.folder
        ends = [*(cut.at for cut in recorded.cuts[1:]), len(self._rows)]
        self._left = [(cut, end) for cut, end in zip(recorded.cuts, ends, strict=True) if cut.at]
        self._texts = [said(row) for row in self._rows]
        self._known = set(self._texts)

    def __call__(self, fed: int, view: Sequence[Row]) -> None:
        while self._left and (at := self._left[0][0].at) <= fed:
            is_lost = any(row["role"] == "assistant" for row in self._rows[at:fed])  # a request came before this one
            self._judge(*self._left.pop(0), () if is_lost else view)

    def finish(self) -> None:
        """Judges the cuts behind which no request came through."""
        self(len(self._rows), ())

    def _judge(self, cut: Cut, end: int, view: Sequence[Row]) -> None:
        written = [row for row in view if said(row) not in self._known]
        verbatim = shown([row for row in view if said(row) in self._known])
        summary: Row = {"role": "user", "content": cut.summary}
        size, before = _size(view), self._rows[: cut.at]
        rows = {
            "view": view,
            "notes": [row for row in written if text_of(row).startswith(_NOTES)],
            "written": written,
            "newest": newest(before, size),
            "both": [summary, *newest(before, size - _size([summary]))],
        }
        events = self._events(cut.at, end)
        unsaid = [value for value in events if not places(verbatim, value)]
        asked = {"events": list(events), "unsaid": unsaid, "read_again": self._read_again(cut.at, end)}
        others = [found for at in set(events.values()) if (found := self._others(at, cut.at))]
        sentences = {fold(one): is_signed(one) for one in sentences_of(before)}
        self._count("model", cut.summary, count(cut.summary), asked, others, sentences)
        for name, some in rows.items():
            self._count(name, shown(some), _size(some), asked, others, sentences)

    def _count(
        self,
        name: str,
        text: str,
        size: int,
        asked: Mapping[str, Sequence[str]],
        others: Sequence[Sequence[str]],
        sentences: Mapping[str, bool],
    ) -> None:
        """What one text holds of all that is asked for at a cut."""
        told, each = self.counted[name], self.each[name]
        told.update({"cuts": 1, "rows": bool(text)})
        each["tokens"] += [size] if text else []
        for kind, values in asked.items():
            told.update({kind: len(values), f"of_{kind}": sum(bool(places(text, value)) for value in values)})
        each["of_control"] += [fmean(bool(places(text, one)) for one in found) for found in others]
        folded = fold(text)
        for sentence, signed in sentences.items():
            held = sentence in folded
            told.update({"sentences": 1, "of_sentences": held, "signed": signed, "of_signed": signed and held})

    def _events(self, cut: int, end: int) -> dict[str, int]:
        """Identifiers that calls behind the cut name and that were last shown before it, each with the row of that."""
        found: dict[str, int] = {}
        for at in range(cut, end):
            for value in {one for text in asked_by(self._rows[at]) for one in self._identifiers(text)}:
                last = self._last(value, at)
                if 0 <= last < cut:
                    found[value] = last
        return found

    def _identifiers(self, text: str) -> set[str]:
        """Those of a text, paths from the session's folder on."""
        folder = f"{self._folder}/"
        return {value.removeprefix(folder).removeprefix("./") or value for value in identifiers(text)}

    def _last(self, value: str, before: int) -> int:
        """The newest row before this one that shows a value, or -1."""
        return next((at for at in range(before - 1, -1, -1) if places(self._texts[at], value)), -1)

    def _others(self, at: int, cut: int) -> list[str]:
        """Identifiers that were last shown in this row, and that no call behind the cut names."""
        later = "\n".join(arguments_of(call) for row in self._rows[cut:] for call in calls_of(row))
        found = (one for one in self._identifiers(self._texts[at]) if one not in later)
        return [one for one in found if self._last(one, cut) == at]

    def _read_again(self, cut: int, end: int) -> list[str]:
        before = {path for row in self._rows[:cut] for path in read_by(row) if path}
        behind = islice((path for row in self._rows[cut:end] for path in read_by(row)), _BEHIND)
        return [path.removeprefix(f"{self._folder}/") for path in before.intersection(behind)]


def sentences_of(rows: Sequence[Row]) -> set[str]:
    """What the user said in own words."""
    texts = [text_of(row) for row in rows if row["role"] == "user"]
    parts = (part.strip() for text in texts if len(text) <= _TYPED for part in _END.split(_ALIEN.sub("\n", text)))
    return {part for part in parts if len(fold(part)) >= _LEAST}


def is_signed(sentence: str) -> bool:
    """True where it holds a word of instructions."""
    return bool(_SIGN.search(sentence))


def asked_by(row: Row) -> Iterator[str]:
    """Short arguments of a row's calls; not those whose values a schema lists."""
    left = [("", call["arguments"]) for call in calls_of(row)]
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += value.items()
        elif isinstance(value, list):
            left += ((name, one) for one in value)
        elif isinstance(value, str) and len(value) <= SHORT and name not in _LISTED:
            yield value


def read_by(row: Row) -> Iterator[str]:
    """For each call of a row the file that it reads, or an empty string."""
    for call in calls_of(row):
        yield str(call["arguments"].get("file_path", "")) if call["tool"] == "Read" else ""


def fold(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _size(rows: Sequence[Row]) -> int:
    return sum(measure(row, count) for row in rows)


def cell(window: str, summariser: str, contestant: str, sealed: bool = False) -> Figures:
    """One contestant in all sessions, each up to its last cut: a line for each text."""
    judges, paid = [], Counter[str]()
    for path in half(SET, sealed):
        recorded = load(path, sealed)
        judges.append(Judge(recorded))
        rows = recorded.session.rows[: recorded.cuts[-1].at]
        session = replace(recorded.session, rows=rows, budget=WINDOWS[window])
        result = play(EVERYONE[contestant], session, SUMMARISERS[summariser], look=judges[-1])
        judges[-1].finish()
        paid.update(dollars(result))
    told = {"window": window, "summariser": summariser, "contestant": contestant}
    texts = _TEXTS if contestant.startswith("Ours") else _OF_PEERS
    lines = [{**told, "text": text, **summed(judges, text)} for text in texts]
    return {"lines": [{**line, **paid} if line["text"] == "view" else line for line in lines]}


def summed(judges: Sequence[Judge], text: str) -> Figures:
    """The figures of one text over all sessions."""
    told = sum((one.counted[text] for one in judges), Counter[str]())
    shares = {f"of_{kind}": told[f"of_{kind}"] / told[kind] for kind in _KINDS if told[kind]}
    each = {name: [value for one in judges for value in one.each[text][name]] for name in _MEANS}
    return {
        "sessions": len(judges),
        **told,
        **shares,
        **{name: fmean(values) for name, values in each.items() if values},
    }


def measured(
    windows: Sequence[str], summarisers: Sequence[str], only: Sequence[str], jobs: int, sealed: bool
) -> list[Figures]:
    """The lines of all cells, and what is missing."""
    wanted = [(window, how, who, sealed) for window in windows for how in summarisers for who in only]
    cells = run_all(cell, wanted, jobs, seconds=3_600, sealed=sealed)
    return [line for one in cells for line in one.get("lines", [one])]


if __name__ == "__main__":
    choices = {
        "windows": (WINDOWS, ["40k"]),
        "summarisers": (SUMMARISERS, ["extracts"]),
        "only": (EVERYONE, ["Ours", "OursFrugal", "OursVerbatim", *BEST, "PydanticAIWhole", "AgentFrameworkWhole"]),
    }
    sys.exit(command("cuts", __doc__, choices, measured, COLUMNS, halves=True))
