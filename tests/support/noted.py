"""The thread, read back line by line and compared with the rows that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from context_summarize.notes.own_text import own_text
from context_summarize.notes.prose import GAP
from context_summarize.notes.thread import NAMES
from context_summarize.testing import JsonRow
from context_summarize.transcript.groups import PartRow
from context_summarize.transcript.marks import mark
from tests.support.inside import rendered
from tests.support.views import notes

_NUMBER = re.escape(mark(0)).replace("0", r"(\d+)")
_SAID, _ENDED = re.compile(rf"{_NUMBER} (?:\(in a result\) )?(.+)"), re.compile(rf"→ {_NUMBER} (.+)")


def lines_of(view: list[JsonRow]) -> list[str]:
    """Returns the lines of the thread, without its frame; none where there is no thread."""
    row = notes(view)
    # A quotation that looks like a frame stands behind a sign.
    return [line.removeprefix("> ") for line in str(row["content"]).split("\n")[1:-1]] if row else []


def words_of_the_user(view: list[JsonRow]) -> dict[int, str]:
    """Returns what the thread quotes of each message of the user."""
    return {int(said[1]): said[2] for said in map(_SAID.fullmatch, lines_of(view)) if said}


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
    """Returns the lines of the thread that are false: their words do not stand where they say, or in that order."""
    lines, rows = lines_of(view), rendered(raws)
    calls = "\n".join(row.text for row in rows if row.role == "assistant")
    names = lines[-1].removeprefix(NAMES).split(", ") if lines and lines[-1].startswith(NAMES) else []
    found = [*_faults_in_words(lines[:-1] if names else lines, rows), *_out_of_order(lines)]
    return [*found, *(name for name in names if not holds(calls, name))]


def _faults_in_words(lines: Sequence[str], rows: Sequence[PartRow]) -> Iterator[str]:
    user = 0
    for line in lines:
        ended, said = _ENDED.fullmatch(line), _SAID.fullmatch(line)
        if ended:
            end = int(ended[1])
            following = next((at for at in range(user + 1, len(rows) + 1) if _is_of_user(rows[at - 1])), len(rows) + 1)
            row = rows[end - 1]
            if not (user < end < following and row.role == "assistant" and holds(row.text, ended[2])):
                yield line
            elif any(row.role == "assistant" for row in rows[end : following - 1]):
                yield f"not the end of its turn: {line}"
        elif said:
            user = int(said[1])
            row = rows[user - 1]
            words = row.said if row.role == "user" else row.text
            if (row.role != "user" and "the user said:" not in row.text) or not holds(own_text(words), said[2]):
                yield line
        elif not re.fullmatch(r"\([\d,]+ more of the user's sentences are left out\.\)", line):
            yield line


def _is_of_user(row: PartRow) -> bool:
    return row.role == "user" and row.said != ""


def _out_of_order(lines: Sequence[str]) -> Iterator[str]:
    numbers = [int(found[1]) for line in lines if (found := re.match(rf"{_NUMBER} ", line))]
    yield from (f"{first} before {second}" for first, second in pairwise(numbers) if first >= second)
