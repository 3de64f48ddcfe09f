"""How time grows with hostile text for each pattern and normalisation over content: `make bench-linear`.

Four times the text, 100 kB instead of 25, may take four times as long; a pattern that goes back over what it has read
takes sixteen times. Both lengths are measured in one run, so the machine does not matter. A pattern that is only given
texts up to some length is measured at that length and at a quarter of it. The whole takes about
two minutes.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.linear_lists import BOUNDED, ENDINGS, LISTED, LONG, MATCHED, SEARCHED, SHORT, UNITS
from context_summarize.facts.directive_sentences import directive_pattern, find_directives
from context_summarize.facts.extraction import extract_facts
from context_summarize.facts.own_voice import own_voice
from context_summarize.recall.search import comparable, excerpt, words_in
from context_summarize.redaction.formats import FORMATS
from context_summarize.redaction.redactor import build_redactor
from context_summarize.transcript.calls import without_calls
from context_summarize.transcript.decomposing import decomposed
from context_summarize.transcript.escaping import escape_marks
from context_summarize.transcript.forged import quoted
from context_summarize.transcript.rows import RenderedRow

Work = Callable[[str], object]

BAR = 6.0
"""Largest ratio of the two times."""
FLOOR = 0.004
"""Seconds. Where the long text takes less, the ratio is noise and counts as four."""
HOPELESS = 0.5
"""Seconds for one long text after which a steep growth needs no second look."""
SUSPICIOUS = 4.6
"""Ratio of the times for 1.5 and 6 kB above which a text is measured at full length."""
LEAST_LOOKS = 3
"""Texts measured at full length, the most suspicious ones and as many of the slowest, where none is above that."""


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


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work over content, by its name."""

    name: str
    run: Work
    units: tuple[str, ...] = ()
    """What a text repeats that is hostile to this piece above all."""

    @property
    def most(self) -> int:
        """Characters of the longest text that it is ever given, at most `LONG`."""
        return min(LONG, BOUNDED.get(self.name.partition("[")[0]) or BOUNDED.get(self.name.rpartition(".")[0]) or LONG)


@lru_cache(maxsize=4_096)
def _repeated(unit: str, length: int) -> str:
    return unit * (length // len(unit))


def hostile(unit: str, ending: str, length: int) -> str:
    """A unit repeated up to a length, and an ending."""
    return _repeated(unit, length) + ending


def worst(growths: Sequence[Growth]) -> Growth:
    """The growth with the largest ratio; of equal ones the slowest."""
    return max(growths, key=lambda growth: (growth.ratio, growth.long))


def _searched(pattern: re.Pattern[str]) -> Work:
    return lambda text: sum(1 for _ in pattern.finditer(text))


def _matched(pattern: re.Pattern[str]) -> Work:
    return lambda text: (pattern.match(text), pattern.fullmatch(text))


def _compiled(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _compiled(one)


def compiled_in(module: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The compiled patterns of one module, also those in its tables, each by the name of its variable."""
    for name, value in sorted(vars(importlib.import_module(f"context_summarize.{module}")).items()):
        yield from ((name, pattern) for pattern in _compiled(value))


def patterns() -> Iterator[Piece]:
    """Each compiled pattern that runs over content."""
    for module in LISTED:
        seen: Counter[str] = Counter()
        for name, pattern in compiled_in(module):
            full = f"{module}.{name}"
            matched = full in MATCHED or (module == "facts.patterns" and name not in SEARCHED)
            again = f"[{seen[name]}]" if seen[name] else ""
            yield Piece(full + again, (_matched if matched else _searched)(pattern))
            seen[name] += 1
    for at, known in enumerate(FORMATS):
        units = tuple(unit for word in known.needs for unit in (word, f"{word} {word}"))
        cased = {word: re.search(re.escape(word), known.pattern.pattern, re.IGNORECASE) for word in known.needs}
        exact = tuple(found[0] for found in cased.values() if found)
        yield Piece(f"redaction.formats[{at}] {known.kind}", _searched(known.pattern), (*units, *exact))
    words = directive_pattern(("always", "never", "do not", "from now on"))
    assert words is not None
    yield Piece("directive_pattern", _searched(words))


def normalisations() -> Iterator[Piece]:
    """Each function that normalises or searches content as a whole."""
    redact = build_redactor(True)
    assert redact is not None
    yield Piece("redact", redact)
    yield Piece("decomposed", decomposed)
    yield Piece("comparable", comparable)
    yield Piece("words_in", lambda text: words_in(text, ("word", "a")))
    yield Piece("excerpt", lambda text: excerpt(text, ("word", "a")))
    yield Piece("escape_marks", escape_marks)
    yield Piece("without_calls", lambda text: without_calls(text, "a"))
    yield Piece("quoted", lambda text: quoted(text, lambda **given: f"Summary {given['first']}\n{given['text']}"))
    yield Piece("facts", lambda text: extract_facts([RenderedRow(1, "user", None, text)]))
    yield Piece("own_voice", own_voice)
    yield Piece("directives", _directives)


def _directives(text: str) -> object:
    return find_directives([[RenderedRow(1, "user", None, f"never {text}")]], ("never", "a"))


def _seconds(work: Work, text: str, times: int) -> float:
    best = float("inf")
    for _ in range(times):
        started = time.process_time()
        work(text)
        best = min(best, time.process_time() - started)
    return best


def measured(piece: Piece, unit: str, ending: str) -> Growth:
    """The growth of one piece of work; measured again, at its best of five, where it looks too steep."""
    texts = [hostile(unit, ending, length) for length in (piece.most // 4, piece.most)]
    long = _seconds(piece.run, texts[1], 1)
    if long < FLOOR:
        return Growth(piece.name, unit, ending, long / 4, long)
    growth = Growth(piece.name, unit, ending, _seconds(piece.run, texts[0], 1), long)
    if growth.is_linear or growth.long > HOPELESS:
        return growth
    growth = Growth(piece.name, unit, ending, *(_seconds(piece.run, text, 5) for text in texts))
    if growth.is_linear or piece.most < LONG:
        return growth
    # A step, such as the longest tail that is searched, is no growth: it does not come again in a longer text.
    texts = [hostile(unit, ending, length) for length in (LONG, 4 * LONG)]
    return Growth(piece.name, unit, ending, *(_seconds(piece.run, text, 2) for text in texts))


def suspicion(piece: Piece, unit: str, ending: str) -> tuple[float, float]:
    """How steep a hostile text looks at a sixteenth of both lengths: (ratio, or 0 where growth cannot matter, seconds).

    What grows with the square by a given share at 100 kB shows a sixteenth of that share here: so little is suspicious,
    and the slowest texts are measured too.
    """
    texts = [hostile(unit, ending, piece.most // share) for share in (64, 16)]
    long = _seconds(piece.run, texts[1], 1)
    if long < FLOOR / 64:
        return 0.0, long
    ratio = long / max(_seconds(piece.run, texts[0], 1), 1e-9)
    if ratio >= SUSPICIOUS:  # another look costs less than a measurement
        short, long = (_seconds(piece.run, text, 3) for text in texts)
        ratio = long / max(short, 1e-9)
    return ratio, long


def steepest(piece: Piece, endings: Sequence[str]) -> Growth:
    """The worst growth of a piece of work over all hostile texts; the first hopeless one ends the search."""
    texts = [(*suspicion(piece, unit, ending), unit, ending) for unit in (*UNITS, *piece.units) for ending in endings]
    texts.sort(key=lambda text: text[0], reverse=True)
    suspicious = sum(ratio >= SUSPICIOUS for ratio, *_ in texts)
    chosen = texts[: max(suspicious, LEAST_LOOKS)]
    slowest = sorted(texts[len(chosen) :], key=lambda text: text[1], reverse=True)[:LEAST_LOOKS]
    growths: list[Growth] = []
    for _, _, unit, ending in (*chosen, *slowest):
        growths.append(measured(piece, unit, ending))
        if growths[-1].long > HOPELESS and not growths[-1].is_linear:
            break
    return worst(growths)


def report(work: Iterable[Piece], endings: Sequence[str]) -> bool:
    """Print the worst growth of each piece of work; True if all are linear."""
    fine = True
    for piece in work:
        growth = steepest(piece, endings)
        fine = fine and growth.is_linear
        print(
            f"{'  ' if growth.is_linear else '! '}{growth.ratio:6.1f}  {1000 * growth.long:8.1f} ms  {piece.name}"
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
    work = [piece for source in (normalisations(), patterns()) for piece in source if options.only in piece.name]
    print(f" ratio  {LONG // 1000:>4} kB take  what, and on which text (bar {BAR:g})")
    started = time.perf_counter()
    fine = report(work, ENDINGS[: options.endings])
    print(f"{len(work)} pieces of work in {time.perf_counter() - started:.0f} s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
