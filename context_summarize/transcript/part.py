"""The text of a part for its summariser: rows under marked headers, without repeats, long results cut."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from context_summarize.transcript.calls import PartText
from context_summarize.transcript.escaping import cut_middle
from context_summarize.transcript.groups import PartRow, longest, result_bytes
from context_summarize.transcript.marks import mark

_REPEATED = 160
"""Characters of the shortest run of lines that is not shown again."""
_LONG_LINE, _SHORT_LINE = 300, 3
"""Characters of the longest line that is kept from what is left out; of a line that may stand anywhere, such as `}`."""
_USED_IN = 2_000
"""Characters of a call or a diff in which names are looked for."""
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(?:[→|\t]|: )")
"""The number that a tool writes before a line."""
_HEADING = re.compile(r"[^\W\d].{2,200}|#{1,6} .{1,200}")
"""A line at the left margin that may name what follows it: a function, a class, a section."""
_WORD = re.compile(r"(?<![\w-])[\w-]++\.[a-z]{1,4}\b|\w+")
_NAME = re.compile(r"(?=.{4,80}$)(?:.*[a-z][A-Z]|.*[^\W_]_|.*\.[a-z]|(?=.*\d).*[^\W\d])")
"""A word with the form of a name: `readFile`, `read_file`, `read.py`, `4e1d9aa`."""
_ROW = re.compile(r"\n\n\[([mb])\d{1,9}\] (user|assistant|tool)[^\n]*")


class _Line(NamedTuple):
    """What a part shows for the lines `first` to `last` of a text: one line, or a note where they stand."""

    first: int
    last: int
    text: str


def stable_length(group: Iterable[PartRow], segment_tokens: int) -> int:
    """Returns the UTF-8 bytes of one group's rows alone. No other row changes them, so parts end by them."""
    writer = _Writer(segment_tokens, {})
    return sum(len(writer.row(0, row).encode("utf-8", "surrogatepass")) + 2 for row in group)


def part_text(rows: Sequence[PartRow], segment_tokens: int, before: str = "", after: str = "") -> str:
    """Returns the text of a part.

    Args:
        rows: those of its groups, in order; the first one is `m1`.
        before, after: the rows around it, see `context.py`.
    """
    writer = _Writer(segment_tokens, _last_uses(rows, after))
    texts = [writer.row(number, row) for number, row in enumerate(rows, 1)]
    return "\n\n".join(filter(None, [before, *texts, after]))


def messages_in(text: str) -> Iterator[tuple[str, str]]:
    """Yields role and words of each message in the text of a part, without its calls."""
    parts = _ROW.split(f"\n\n{text}")
    for letter, role, said in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if letter == "m":
            yield role, re.split(r"(?m)^call ", said, maxsplit=1)[0].strip("\n")


def _last_uses(rows: Sequence[PartRow], after: str) -> dict[str, int]:
    """Returns for each name in calls, and in the text behind the part, the number of the last row that uses it."""
    used: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        for text in row.texts:
            if text.kind in ("call", "diff"):
                used |= dict.fromkeys(_names_in(text.text[:_USED_IN]), number)
    return used | dict.fromkeys(_names_in(after), len(rows) + 1)


def _names_in(text: str) -> set[str]:
    return {word for word in _WORD.findall(text) if _NAME.match(word)}


def _plain(lines: Sequence[str]) -> list[str]:
    """Returns lines without the numbers that a tool wrote before them: such numbers count up."""
    found = [_NUMBERED.match(line) for line in lines]
    first, second = ([int(one[1]) for one in found[:2] if one] + [0, 0])[:2]
    if second != first + 1:
        return [*lines]
    return [line[one.end() :] if one else line for line, one in zip(lines, found, strict=True)]


class _Writer:
    """Writes the rows of a part one after the other, and remembers what they showed."""

    def __init__(self, segment_tokens: int, last_uses: dict[str, int]) -> None:
        self._result, self._longest = result_bytes(segment_tokens), longest(segment_tokens)
        self._last_uses = last_uses
        self._texts: list[tuple[int, list[str]]] = []
        """The lines that each text showed, with the number of its row."""
        self._places: dict[str, tuple[int, int]] = {}
        """For each of these lines the newest text with it, and its first place there."""
        self._headings: dict[str, str | None] = {}
        """The heading above each line that was read; None if it stands below several."""
        self._answers: dict[tuple[str, str], int] = {}

    def row(self, number: int, row: PartRow) -> str:
        """Returns the header and the texts of a row."""
        lines = [f"{mark(number)} {row.title}"]
        for text in row.texts:
            lines += [text.label] if text.label else []
            lines += self._shown(number, row.title, text)
        return "\n".join(lines)

    def _shown(self, number: int, title: str, text: PartText) -> Sequence[str]:
        """Returns the lines that the part shows of one text."""
        if text.kind == "call":
            return [text.text]
        lines = text.text.split("\n")
        if text.kind == "diff":
            heading = self._heading(line[1:] for line in lines if line[0] in " -")
            self._remember(number, [line[1:] for line in lines if line[0] in " +"])
            return [f"@@ {heading}".rstrip(), *lines]
        earlier = self._answered(number, title, text)
        if earlier:
            return [f"(as in {mark(earlier)})"]
        limit = self._result if text.kind == "result" else self._longest
        shown = _cut(self._without_repeats(lines), limit, lambda name: self._last_uses.get(name, 0) > number)
        self._remember(number, shown)
        self._read_headings(lines)
        return shown

    def _remember(self, number: int, lines: Sequence[str]) -> None:
        plain = _plain(lines)
        self._places |= {line: (len(self._texts), at) for at, line in reversed([*enumerate(plain)])}
        self._texts.append((number, plain))

    def _read_headings(self, lines: Sequence[str]) -> None:
        heading = ""
        for line in _plain(lines):
            heading = line if _HEADING.fullmatch(line) else heading
            if self._headings.setdefault(line, heading) != heading:
                self._headings[line] = None

    def _heading(self, lines: Iterable[str]) -> str:
        """Returns the heading above the first of these lines that was read at one place only; "" without one."""
        read = (self._headings.get(line) for line in lines if len(line.strip()) > _SHORT_LINE)
        return next((heading for heading in read if heading is not None), "")

    def _answered(self, number: int, title: str, text: PartText) -> int | None:
        """Returns the row of an earlier result that says the same of its own call."""
        tool = " ".join(title.split(" ", 2)[:2])
        found = self._answers.setdefault((tool, text.alike), number) if text.alike else number
        return None if found == number or len(text.text) < len(f"(as in {mark(found)})") else found

    def _without_repeats(self, lines: Sequence[str]) -> list[_Line]:
        """Returns the lines of a text; in place of those that stand in an earlier one, its mark."""
        out, at, plain = list[_Line](), 0, _plain(lines)
        while at < len(lines):
            number, length, size = self._run(plain, at)
            if size >= _REPEATED:
                what = "as" if length == len(lines) else f"{length} lines as" if length > 1 else "a line as"
                out.append(_Line(at + 1, at + length, f"({what} in {mark(number)})"))
            else:  # a run that is too short has no longer one within it
                out += [_Line(place + 1, place + 1, lines[place]) for place in range(at, at + max(1, length))]
            at += max(1, length)
        return out

    def _run(self, lines: Sequence[str], at: int) -> tuple[int, int, int]:
        """Returns row, lines and characters of the run that begins here and stands in an earlier text."""
        text, place = self._places.get(lines[at], (0, 0))
        number, earlier = self._texts[text] if self._texts else (0, [])
        most, length, size = min(len(lines) - at, len(earlier) - place), 0, 0
        while length < most and lines[at + length] == earlier[place + length]:
            size += len(lines[at + length].strip())
            length += 1
        return number, length, size


def _cut(lines: Sequence[_Line], limit: int, is_used: Callable[[str], bool]) -> list[str]:
    """Returns the lines within so many bytes: head (two thirds), tail, and some of what lies between.

    Those have a name that is used later, and take at most an eighth more.
    """
    sizes = [len(line.text.encode("utf-8", "surrogatepass")) + 1 for line in lines]
    if sum(sizes) <= limit + 1:
        return [line.text for line in lines]
    longest_line = limit if len(lines) == 1 else limit // 3
    texts = [cut_middle(line.text, longest_line) for line in lines]
    sizes = [min(size, longest_line) for size in sizes]
    head = max(1, sum(1 for size in accumulate(sizes) if size <= limit * 2 // 3))
    end = len(lines) - max(1, sum(1 for size in accumulate(reversed(sizes[head:])) if size <= limit // 3))
    if head >= end:
        return texts
    left_out = f"[… lines {lines[head].first:,} to {lines[end - 1].last:,} of {lines[-1].last:,} left out"
    kept = _kept(lines[head:end], is_used, limit // 8)
    if kept:
        but = f"{left_out}, but for {len(kept):,} with names that are used later:]"
        return [*texts[:head], but, *kept, f"[from line {lines[end].first:,} on:]", *texts[end:]]
    return [*texts[:head], f"{left_out} …]", *texts[end:]]


def _kept(lines: Sequence[_Line], is_used: Callable[[str], bool], room: int) -> list[str]:
    """Returns those of these lines with a name that is used later, the rarest names first, in their order."""
    names = [{*filter(is_used, _names_in(line.text))} if len(line.text) <= _LONG_LINE else set[str]() for line in lines]
    counts = Counter(chain.from_iterable(names))
    taken: list[int] = []
    for _, at in sorted((min(counts[name] for name in held), at) for at, held in enumerate(names) if held):
        room -= len(lines[at].text) + 1
        if room < 0:
            break
        taken.append(at)
    return [lines[at].text for at in sorted(taken)]
