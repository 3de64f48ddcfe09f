"""How time grows with hostile text for each pattern and normalisation over content: `make bench-linear`.

Four times the text, 100 kB instead of 25, may take four times as long; a pattern that goes back over what it has read
takes sixteen times. Both lengths are measured in one run, so the machine does not matter.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from context_summarize.facts.extraction import extract_facts
from context_summarize.recall.search import comparable, excerpt, words_in
from context_summarize.redaction.formats import FORMATS
from context_summarize.redaction.redactor import build_redactor
from context_summarize.transcript.decomposing import decomposed
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.forged import quoted
from context_summarize.transcript.rows import RenderedRow

Work = Callable[[str], object]

SHORT, LONG = 25_000, 100_000
"""Characters."""
BAR = 6.0
"""Largest ratio of the two times."""
FLOOR = 0.004
"""Seconds. Where the long text takes less, the ratio is noise and counts as four."""
ENDINGS = ("", "!", "\n", " ", '"', "'", "a", "0", "-", ".", "@", ":", "=", ")", "\\", "-----END PRIVATE KEY-----")
UNITS = (
    "a", "0", " ", "\n", "\\", '"', "=", "-", ".", "_", "/", "a.", "a-", "a/", "a b ", "\\n", "\n  ", "A1", "x:",
    "://a:", "\u0300\u0316", "&amp;", "%25", "%41", "\x1b[3", "\x1b[31m", "glpat-", "eyJ-", "eyJ.", "sk-", "curl -u ",
    "login a ", "token=", "token='", "password: ", "bearer ", "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----" + "A" * 64,
    "A" * 64 + "\n", "-----END PRIVATE KEY-----", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", "Error: ", "exit code ",
    "=== ", "# 1 ", "$1,", "\"price\":", "reservation ", "C:\\a\\",
)  # fmt: skip
"""What a hostile text repeats."""
MODULES = (
    "facts.commands", "facts.patterns", "recall.search", "redaction.assigned", "redaction.keys", "redaction.marks",
    "redaction.values", "redaction.views", "transcript.fences", "transcript.forged", "transcript.escaping",
    "transcript.rows",
)  # fmt: skip
"""Modules whose patterns run over content, under `context_summarize`; formats of secrets are listed by themselves."""
ON_TOKENS = ("facts.patterns", "redaction.assigned", "redaction.values")
"""Modules whose patterns are mostly matched from a given place on, against values of a bounded length."""
SEARCHED = (
    "URL", "TOKEN", "_ESCAPE", "_AMOUNT", "_JSON_AMOUNT", "_QUOTED_CODE", "_ASSIGNED", "_SAYS_SO", "_INTERESTING",
)  # fmt: skip
"""Patterns of `ON_TOKENS` that are searched for in whole texts all the same."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The times of one piece of work over two lengths of one hostile text."""

    name: str
    unit: str
    ending: str
    short: float
    long: float

    @property
    def ratio(self) -> float:
        """How many times as long the long text takes; 4 where both take next to no time."""
        return self.long / max(self.short, 1e-9) if self.long >= FLOOR else LONG / SHORT

    @property
    def is_linear(self) -> bool:
        """Whether the ratio is within the bar."""
        return self.ratio <= BAR


def hostile(unit: str, ending: str, length: int) -> str:
    """A unit repeated up to a length, and an ending."""
    return unit * (length // len(unit)) + ending


def worst(growths: Sequence[Growth]) -> Growth:
    """The growth with the largest ratio; of equal ones the slowest."""
    return max(growths, key=lambda growth: (growth.ratio, growth.long))


def _searched(pattern: re.Pattern[str]) -> Work:
    return lambda text: sum(1 for _ in pattern.finditer(text))


def _matched(pattern: re.Pattern[str]) -> Work:
    return lambda text: (pattern.match(text), pattern.fullmatch(text))


def patterns() -> Iterator[tuple[str, Work]]:
    """Each compiled pattern that runs over content, by its name."""
    for module in MODULES:
        for name, value in sorted(vars(importlib.import_module(f"context_summarize.{module}")).items()):
            if isinstance(value, re.Pattern):
                matched = module in ON_TOKENS and name not in SEARCHED
                yield f"{module}.{name}", (_matched if matched else _searched)(value)
    for at, known in enumerate(FORMATS):
        yield f"redaction.formats[{at}] {known.kind} {known.needs[0]}", _searched(known.pattern)


def normalisations() -> Iterator[tuple[str, Work]]:
    """Each function that normalises or searches content as a whole, by its name."""
    redact = build_redactor(True)
    assert redact is not None
    yield "redact", redact
    yield "decomposed", decomposed
    yield "comparable", comparable
    yield "words_in", lambda text: words_in(text, ("word", "a"))
    yield "excerpt", lambda text: excerpt(text, ("word", "a"))
    yield "escape_marks", escape_marks
    yield "quoted", lambda text: quoted(text, lambda **given: f"Summary {given['first']}\n{given['text']}")
    yield "facts", lambda text: extract_facts([RenderedRow(1, "user", None, text)])


def _seconds(work: Work, text: str, times: int) -> float:
    best = float("inf")
    for _ in range(times):
        started = time.process_time()
        work(text)
        best = min(best, time.process_time() - started)
    return best


def measured(name: str, work: Work, unit: str, ending: str) -> Growth:
    """The growth of one piece of work; measured again, at its best of five, where it looks too steep."""
    texts = [hostile(unit, ending, length) for length in (SHORT, LONG)]
    growth = Growth(name, unit, ending, *(_seconds(work, text, 1) for text in texts))
    return growth if growth.is_linear else Growth(name, unit, ending, *(_seconds(work, text, 5) for text in texts))


def report(work: Iterator[tuple[str, Work]], endings: Sequence[str]) -> bool:
    """Print the worst growth of each piece of work; True if all are linear."""
    fine = True
    for name, run in work:
        units = (*UNITS, *(f"{word} {word}" for word in name.split()[2:]), *name.split()[2:])
        growth = worst([measured(name, run, unit, ending) for unit in units for ending in endings])
        fine = fine and growth.is_linear
        print(
            f"{'  ' if growth.is_linear else '! '}{growth.ratio:6.1f}  {1000 * growth.long:8.1f} ms  {name}"
            f"  {growth.unit[:30]!r} … {growth.ending!r}",
            flush=True,
        )
    return fine


def main() -> int:
    """Print the table; 1 if a growth is over the bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear", description=__doc__)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--endings", type=int, default=len(ENDINGS), help="how many of the endings")
    options = parser.parse_args()
    work = (one for source in (normalisations(), patterns()) for one in source if options.only in one[0])
    print(f" ratio  {LONG // 1000:>4} kB take  what, and on which text (bar {BAR:g})")
    return 0 if report(work, ENDINGS[: options.endings]) else 1


if __name__ == "__main__":
    sys.exit(main())
