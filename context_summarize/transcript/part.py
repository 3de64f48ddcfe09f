"""The text of a part for its summariser: rows under marked headers, without repeats, long results cut."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain

from context_summarize.messages.rows import Call
from context_summarize.transcript.escaping import cut_middle
from context_summarize.transcript.groups import PartRow, PartText, parsed
from context_summarize.transcript.marks import counted, mark

_REPEATED = 160
"""Characters of the shortest run of lines that is not shown again."""
_LONG_LINE = 300
"""Characters of the longest line that is kept from what is left out."""
_NEAR = 2
"""Unchanged lines of an edit that are shown before and behind the changed ones."""
_USED_IN = 2_000
"""Characters of a call or a diff in which names are looked for."""
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})(?:[→|\t]|: )")
"""The number that a tool writes before a line."""
_WORD = re.compile(r"(?<![\w-])[\w-]++\.[a-z]{1,4}\b|\w+")
_NAME = re.compile(r"(?=.{4,80}$)(?:.*[a-z][A-Z]|.*[^\W_]_|.*\.[a-z]|(?=.*\d).*[^\W\d])")
"""A word with the form of a name: `readFile`, `read_file`, `read.py`, `4e1d9aa`."""
_ROW = re.compile(r"\n\n\[([mb])\d{1,9}\] (user|assistant|tool)[^\n]*\n")
_CALL = re.compile(r"(?m)^call (?=\S)")


def stable_length(group: Iterable[PartRow], segment_tokens: int) -> int:
    """Returns the UTF-8 bytes of one group's rows alone. No other row changes them, so parts end by them."""
    writer = _Writer(segment_tokens, {})
    return sum(len(writer.row(0, row).encode("utf-8", "surrogatepass")) + 2 for row in group)


def part_text(rows: Sequence[PartRow], segment_tokens: int, before: str = "", after: str = "") -> str:
    """Returns the text of a part. A result longer than half a segment is cut, and so is a row longer than ten.

    Args:
        rows: those of its groups, in order; the first one is `m1`.
        before, after: the rows around it, under their headers.
    """
    writer = _Writer(segment_tokens, _last_uses(rows, after))
    texts = [writer.row(number, row) for number, row in enumerate(rows, 1)]
    return "\n\n".join(filter(None, [before, *texts, after]))


def rows_in(text: str) -> Iterator[PartRow]:
    """Yields the rows of the text of a part, without those around it."""
    parts = _ROW.split(f"\n\n{text}")
    for letter, role, words in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if letter == "m":
            said, *calls = _CALL.split(words) if role == "assistant" else [words]
            texts = [PartText("result" if role == "tool" else "said", said.strip("\n"))]
            for call in calls:
                name, _, arguments = call.split("\n", 1)[0].partition("(")
                texts.append(PartText("call", call, call=Call("", name, parsed(arguments.removesuffix(")")))))
            yield PartRow(role, "", tuple(texts))


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


class _Writer:
    """Writes the rows of a part one after the other, and remembers what they showed."""

    def __init__(self, segment_tokens: int, last_uses: dict[str, int]) -> None:
        self._longest_result, self._longest = 2 * segment_tokens, 40 * segment_tokens
        self._last_uses = last_uses
        self._texts: list[tuple[int, list[str]]] = []
        """The lines that each text showed, with the number of its row."""
        self._places: dict[str, tuple[int, int]] = {}
        """For each of these lines the newest text with it, and its first place there."""
        self._answers: dict[tuple[str, str], int] = {}
        """The rows of results, by tool and what they say of their call."""

    def row(self, number: int, row: PartRow) -> str:
        """Returns the header and the texts of a row."""
        lines: list[str] = []
        for text in row.texts:
            lines += self._shown(number, row.title, text)
        return f"{mark(number)} {row.title}\n" + cut_middle("\n".join(lines), self._longest)

    def _shown(self, number: int, title: str, text: PartText) -> Sequence[str]:
        """Returns the lines that the part shows of one text."""
        if text.kind in ("call", "label"):
            return [text.text]
        lines = text.text.split("\n")
        if text.kind == "diff":
            changed = [at for at, line in enumerate(lines) if line[:1] != " "]
            lines = lines[max(0, changed[0] - _NEAR) : changed[-1] + _NEAR + 1] if changed else [" (no change)"]
            self._remember(number, [line[1:] for line in lines if line[:1] != "-"])
            return lines
        if text.alike:
            found = self._answers.setdefault((" ".join(title.split(" ", 2)[:2]), text.alike), number)
            as_in = f"(as in {mark(found)})"
            if found != number and len(text.text) > len(as_in):
                return [as_in]
        if text.kind == "result":
            lines = _cut(lines, self._longest_result, lambda name: self._last_uses.get(name, 0) > number)
        shown = [*self._without_repeats(lines)]
        self._remember(number, shown)
        return shown

    def _remember(self, number: int, lines: Sequence[str]) -> None:
        plain = _plain(lines)
        self._places |= {line: (len(self._texts), at) for at, line in reversed([*enumerate(plain)])}
        self._texts.append((number, plain))

    def _without_repeats(self, lines: Sequence[str]) -> Iterator[str]:
        """Yields the lines of a text; in place of those that stand in an earlier one, its mark."""
        at, plain = 0, _plain(lines)
        while at < len(lines):
            number, length, size = self._run(plain, at)
            if size >= _REPEATED:
                what = "" if length == len(lines) else f"{counted(length, 'line')} "
                yield f"({what}as in {mark(number)})"
            else:  # a run that is too short has no longer one within it
                yield from lines[at : at + max(1, length)]
            at += max(1, length)

    def _run(self, lines: Sequence[str], at: int) -> tuple[int, int, int]:
        """Returns row, lines and characters of the run that begins here and stands in an earlier text."""
        if lines[at] not in self._places:
            return 0, 0, 0
        text, place = self._places[lines[at]]
        number, earlier = self._texts[text]
        most, length, size = min(len(lines) - at, len(earlier) - place), 0, 0
        while length < most and lines[at + length] == earlier[place + length]:
            size += len(lines[at + length].strip())
            length += 1
        return number, length, size


def _plain(lines: Sequence[str]) -> list[str]:
    """Returns lines without the numbers that a tool wrote before them: such numbers count up."""
    found = [_NUMBERED.match(line) for line in lines]
    first, second = ([int(one[1]) for one in found[:2] if one] + [0, 0])[:2]
    if second != first + 1:
        return [*lines]
    return [line[one.end() :] if one else line for line, one in zip(lines, found, strict=True)]


def _cut(lines: Sequence[str], limit: int, is_used: Callable[[str], bool]) -> list[str]:
    """Returns the lines within so many bytes: head (two thirds), tail, and some of what lies between.

    Those have a name that is used later, and take at most an eighth more.
    """
    if sum(map(_bytes, lines)) <= limit + 1:
        return [*lines]
    texts = [cut_middle(line, limit if len(lines) == 1 else limit // 3) for line in lines]
    head = max(1, sum(1 for size in accumulate(map(_bytes, texts)) if size <= limit * 2 // 3))
    tail = sum(1 for size in accumulate(map(_bytes, reversed(texts[head:]))) if size <= limit // 3)
    end = len(lines) - max(1, tail)
    if head >= end:
        return texts
    left_out = f"[… lines {head + 1:,} to {end:,} of {len(lines):,} left out"
    kept = _kept(lines[head:end], is_used, limit // 8)
    if kept:
        but = f"{left_out}, but for {len(kept):,} with names that are used later:]"
        return [*texts[:head], but, *kept, f"[from line {end + 1:,} on:]", *texts[end:]]
    return [*texts[:head], f"{left_out} …]", *texts[end:]]


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "surrogatepass")) + 1


def _kept(lines: Sequence[str], is_used: Callable[[str], bool], room: int) -> list[str]:
    """Returns those of these lines with a name that is used later, the rarest names first, in their order."""
    names = [{*filter(is_used, _names_in(line))} if len(line) <= _LONG_LINE else set[str]() for line in lines]
    counts = Counter(chain.from_iterable(names))
    taken: list[int] = []
    for _, at in sorted((min(counts[name] for name in held), at) for at, held in enumerate(names) if held):
        room -= len(lines[at]) + 1
        if room < 0:
            break
        taken.append(at)
    return [lines[at] for at in sorted(taken)]
