"""`python -m benchmarks.cuts`: what do a large model's summary and our view hold where it summarised a coding session?

Claude Code's published sessions (`benchmarks.real.checkpoints`) hold the summary that the model wrote at each
compaction, here a *cut*. Each contestant plays the same rows and compacts when it chooses. Its request at each cut is
judged; a request that fails holds nothing. The table has a line for each of these texts:

* *model*: the model's summary. *notes*: our thread alone. *view*: the whole request.
* *newest*: the newest rows of the view's size. *both*: the model's summary and the newest rows, together of that size.

An *event* is an identifier that a call between this cut and the next one has in a short argument, and that was last
shown before the cut. Values that a tool's schema lists do not count. Paths begin at the session's folder. *of_events*
is the share of events that the text holds; *of_control* is that share of the identifiers that the same rows show and no
later call names. *sentences* are the user's own before the cut; only their letters and digits are compared. *tokens*
is the mean over *rows*, the cuts that have the text. *dollars* pay for all sessions, each up to its last cut.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from benchmarks.field import SUMMARISERS
from benchmarks.peers import BEST, EVERYONE
from benchmarks.prices import DOLLARS, dollars
from benchmarks.prospective import SHORT, WINDOWS
from benchmarks.real import half
from benchmarks.real.checkpoints import SET, Cut, Recorded, load
from benchmarks.report import Figures, command, run_all
from benchmarks.run import play
from benchmarks.scores import newest, shown
from benchmarks.tokens import Row, arguments_of, calls_of, count, measure, said, text_of
from benchmarks.words import identifiers, places

_LISTED = {"model", "output_mode", "status", "subagent_type", "taskId", "type"}
"""Arguments whose values a tool's schema lists or numbers, such as `in_progress`."""
_NOTES = "[Thread of messages"
"""The beginning of the thread."""
_TYPED = 1_000
"""Characters. Longer messages of the user hold pasted text, or a plan that the host filled in."""
_ALIEN = re.compile(r"(?s)```.*?(?:```|\Z)|<([\w-]+)>.*?</\1>|(?:(?<=\n)|\A)[ \t]*>[^\n]*")
"""Text that is fenced, tagged or quoted, so not the user's own."""
_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_LEAST = 8
"""Letters and digits of the shortest sentence that counts; "ok" says nothing."""
_TEXTS = ("model", "notes", "view", "newest", "both")
_OF_PEERS = ("view", "newest")
_KINDS = ("events", "sentences")
_MEANS = ("of_control", "tokens")
COLUMNS = (
    *("window", "summariser", "contestant", "text", "sessions", "cuts", "rows", "tokens", "events", "of_events"),
    *("of_control", "sentences", "of_sentences", *DOLLARS),
)


class Judge:
    """Judges the request at each cut of a session."""

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
            is_lost = any(row["role"] == "assistant" for row in self._rows[at:fed])  # the request at the cut failed
            self._judge(*self._left.pop(0), () if is_lost else view)

    def finish(self) -> None:
        """Judges the last cuts, if no request succeeded after them."""
        self(len(self._rows), ())

    def _judge(self, cut: Cut, end: int, view: Sequence[Row]) -> None:
        written = [row for row in view if said(row) not in self._known]
        summary: Row = {"role": "user", "content": cut.summary}
        size, before = _size(view), self._rows[: cut.at]
        rows = {
            "view": view,
            "notes": [row for row in written if text_of(row).startswith(_NOTES)],
            "newest": newest(before, size),
            "both": [summary, *newest(before, size - _size([summary]))],
        }
        events = self._events(cut.at, end)
        others = [found for at in set(events.values()) if (found := self._others(at, cut.at))]
        sentences = set(map(fold, sentences_of(before)))
        for name, text, tokens in (
            ("model", cut.summary, count(cut.summary)),
            *((name, shown(some), _size(some)) for name, some in rows.items()),
        ):
            told, folded = self.counted[name], fold(text)
            told.update({"cuts": 1, "rows": bool(text), "events": len(events), "sentences": len(sentences)})
            told["of_events"] += sum(bool(places(text, value)) for value in events)
            told["of_sentences"] += sum(sentence in folded for sentence in sentences)
            self.each[name]["tokens"] += [tokens] if text else []
            self.each[name]["of_control"] += [fmean(bool(places(text, one)) for one in found) for found in others]

    def _events(self, cut: int, end: int) -> dict[str, int]:
        """Returns identifiers that calls behind the cut name, each with the row before the cut that last showed it."""
        found: dict[str, int] = {}
        for at in range(cut, end):
            for value in {one for text in asked_by(self._rows[at]) for one in self._identifiers(text)}:
                last = self._last(value, at)
                if 0 <= last < cut:
                    found[value] = last
        return found

    def _identifiers(self, text: str) -> set[str]:
        """Returns the identifiers of a text; its paths begin at the session's folder."""
        folder = f"{self._folder}/"
        return {value.removeprefix(folder).removeprefix("./") or value for value in identifiers(text)}

    def _last(self, value: str, before: int) -> int:
        """Returns the newest row before this one that shows a value, or -1."""
        return next((at for at in range(before - 1, -1, -1) if places(self._texts[at], value)), -1)

    def _others(self, at: int, cut: int) -> list[str]:
        """Returns the identifiers that this row was the last to show, and that no call behind the cut names."""
        later = "\n".join(arguments_of(call) for row in self._rows[cut:] for call in calls_of(row))
        found = (one for one in self._identifiers(self._texts[at]) if one not in later)
        return [one for one in found if self._last(one, cut) == at]


def sentences_of(rows: Sequence[Row]) -> set[str]:
    """Returns the sentences that the user wrote, without pasted, fenced and quoted text."""
    texts = [text_of(row) for row in rows if row["role"] == "user"]
    parts = (part.strip() for text in texts if len(text) <= _TYPED for part in _END.split(_ALIEN.sub("\n", text)))
    return {part for part in parts if len(fold(part)) >= _LEAST}


def asked_by(row: Row) -> Iterator[str]:
    """Yields the short arguments of a row's calls, except those whose values a schema lists."""
    left = [("", call["arguments"]) for call in calls_of(row)]
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += value.items()
        elif isinstance(value, list):
            left += ((name, one) for one in value)
        elif isinstance(value, str) and len(value) <= SHORT and name not in _LISTED:
            yield value


def fold(text: str) -> str:
    """Returns the letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _size(rows: Sequence[Row]) -> int:
    return sum(measure(row, count) for row in rows)


def cell(window: str, summariser: str, contestant: str, sealed: bool = False) -> Figures:
    """Plays one contestant in all sessions, each up to its last cut, and returns a line for each text."""
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
    """Returns the figures of one text over all sessions."""
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
    """Plays all cells and returns their lines."""
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
