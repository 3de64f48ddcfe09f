"""The row of notes, read back line by line and compared with the rows that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from context_summarize.notes.own_text import own_text
from context_summarize.notes.prose import GAP
from context_summarize.notes.row import HEADINGS
from context_summarize.testing import JsonRow
from context_summarize.transcript.rendered import RenderedRow
from tests.support.inside import rendered
from tests.support.views import notes

WORDS, UNDER_WAY, WRITTEN, RUNS, NAMED, USED = range(len(HEADINGS))
_QUOTED = r"(\"[^\"]*\"|“[^”]*”|«[^»]*»|‹[^›]*›)"  # noqa: RUF001 - quotation marks
_USED_LINE = re.compile(rf"#(\d+) ([^\n:]+): {_QUOTED}")
_RUN = re.compile(rf"{_QUOTED} \(#(\d+)\)(?:: {_QUOTED})?")
_PATH = re.compile(rf"([^;]+) \(#(\d+)(?:: {_QUOTED})?\)")


def lines_of(view: list[JsonRow]) -> list[list[str]]:
    """Returns the lines under each heading, in the order of `HEADINGS`, without the frame; none where it has no row."""
    found: list[list[str]] = [[] for _ in HEADINGS]
    row, at = notes(view), 0
    for line in str(row["content"]).split("\n")[1:-1] if row else []:
        plain = line.removeprefix("> ")  # a quotation that looks like a frame stands behind a sign
        opened = next((number for number, heading in enumerate(HEADINGS) if plain.startswith(heading.strip())), None)
        at, rest = (at, plain) if opened is None else (opened, plain[len(HEADINGS[opened].rstrip()) :])
        found[at] += [rest.strip()] if rest.strip() else []
    return found


def words_of_the_user(view: list[JsonRow]) -> list[str]:
    """Returns the lines of the notes that quote the user."""
    return [line for line in lines_of(view)[WORDS] if line.startswith("#")]


def holds(text: str, quotation: str) -> bool:
    """True where every part of a quotation stands in the text, in this order; blanks and marks aside."""
    at, letters = 0, _letters(text)
    for part in map(_letters, quotation.split(GAP)):
        at = letters.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def _letters(text: str) -> str:
    return re.sub(r"[\s\ud800-\udfff\ufffd\"'“”«»‹›\\]", "", text)  # noqa: RUF001 - quotation marks


def faults(view: list[JsonRow], raws: Sequence[JsonRow]) -> list[str]:
    """Returns the lines of the notes that are false: their words do not stand where the line says, or in that order."""
    lines, rows = lines_of(view), rendered(raws)
    found = [*_faults_in_words(lines[WORDS], rows), *_out_of_order(lines[WORDS])]
    for line in lines[USED]:
        told = _USED_LINE.fullmatch(line)
        row = rows[int(told[1]) - 1] if told else None
        if told is None or row is None or not holds(row.text, told[3]) or row.own:
            found.append(line)
    for line in lines[WRITTEN]:
        spots = _PATH.findall(line)
        found += [line for path, number, _ in spots if not holds(rows[int(number) - 1].text, path)] if spots else [line]
    for line in lines[RUNS]:
        runs = _RUN.findall(line)
        found += [line for told, number, _ in runs if not holds(rows[int(number) - 1].text, told)] if runs else [line]
    calls = "\n".join(row.text for row in rows if row.role == "assistant")
    return [*found, *(name for line in lines[NAMED] for name in line.split(", ") if not holds(calls, name))]


def _faults_in_words(lines: Sequence[str], rows: Sequence[RenderedRow]) -> Iterator[str]:
    user = 0
    for line in lines:
        told = re.fullmatch(r"→ #(\d+) (.+)", line)
        said = re.fullmatch(r"#(\d+) (.+)", line)
        if told:
            end = int(told[1])
            following = next((row.number for row in rows[user:] if row.own), len(rows) + 1)
            row = rows[end - 1]
            if not (user < end < following and row.role == "assistant" and holds(row.text, told[2])):
                yield line
            elif any(row.role == "assistant" for row in rows[end : following - 1]):
                yield f"not the end of its turn: {line}"
        elif said:
            user = int(said[1])
            if rows[user - 1].role != "user" or not holds(own_text(rows[user - 1].said), said[2]):
                yield line
        elif not re.fullmatch(r"\([\d,]+ more of the user's sentences are left out\.\)", line):
            yield line


def _out_of_order(lines: Sequence[str]) -> Iterator[str]:
    numbers = [int(found[1]) for line in lines if (found := re.match(r"#(\d+) ", line))]
    yield from (f"#{first} before #{second}" for first, second in pairwise(numbers) if first >= second)
