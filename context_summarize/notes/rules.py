"""The user's rules: sentences with a sign, such as "always", and the lines that a summary quotes as rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from context_summarize.notes.prose import NO_BLANKS, flat
from context_summarize.transcript.escaping import decomposed
from context_summarize.transcript.marks import counted, renumber

_WORDS, _LETTERS = 4, 6
"""A line of at least so many words may quote a part of a sentence. A sentence of so few letters is no rule."""
_INSIDE = re.compile(r"`[^`]*+`|\"[^\"]*+\"|“[^“”]*+”")
"""A quotation within a sentence: a sign in it does not count."""
_BULLET = re.compile(r"\s*+(?:[-*+•–—]|\(?\d{1,3}[.)])\s++")
_HEADING = re.compile(r"(\s{0,20}[#*_]{0,9}\s{0,20})([^\W\d_][^:\uff1a.!?\n]{0,40}?)[*_]*(?:([:\uff1a])[*_]*|\s*$)")


def sign_pattern(signs: Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern for any of these whole words, in any case; `^` is the start of a sentence."""
    parts = ["(?!)"]
    for sign in (sign for sign in signs if sign.strip("^ ")):
        inner = r"\s+".join(map(re.escape, sign.removeprefix("^").split())).replace("'", "['’]")
        before = r"^\W{0,20}" if sign[0] == "^" else r"(?<!\w)"
        parts.append(inner if NO_BLANKS.search(sign) else rf"{before}{inner}(?!\w)")
    return re.compile("|".join(parts), re.I)


def has_sign(pattern: re.Pattern[str], sentence: str) -> bool:
    """Returns True for a sentence with a sign. Questions and sentences as short as "Never mind." do not count."""
    said = _INSIDE.sub(" ", sentence)
    is_long = len(said.split()) > 2 or NO_BLANKS.search(said) is not None
    return is_long and sentence.rstrip()[-1:] not in ("?", "\uff1f") and pattern.search(said) is not None


def quoted_lines(summary: str, heading: str) -> Iterator[tuple[int, str]]:
    """Yields each line of a summary under a heading: the line's number, from 0, and its text.

    Where the lines below are a list, or the heading's own line holds a rule, any other line ends them. Otherwise the
    next heading does.
    """
    inside = is_list = False
    for at, line in enumerate(summary.split("\n")):
        bullet = _BULLET.match(line)
        found = _HEADING.match(line, bullet.end() if bullet else 0)
        if found and found[2].strip().casefold() == heading.casefold():
            line, bullet = line[found.end() :], None
            inside, is_list = True, any(map(str.isalnum, line))
        elif bullet:
            is_list = True
        elif (found and (found[1].strip() or found[3])) or (is_list and line[:1].strip()):
            inside = False
        said = line[bullet.end() if bullet else 0 :].strip()
        if inside and (len(said.split()) > 1 or len(NO_BLANKS.findall(said)) > 3):
            yield at, said  # "none" is no rule


def quoted_of(said: Iterable[str], summaries: Iterable[str], heading: str) -> set[str]:
    """Returns the folded sentences of the user that summaries quote as rules, whole or at least four words of them."""
    lines = [line for one in summaries for _, line in quoted_lines(renumber(one, 1, 0), heading)]
    whole = "\n".join(map(folded, lines))
    parts = [folded(line) for line in lines if max(len(line.split()), len(NO_BLANKS.findall(line)) // 2) >= _WORDS]
    return {one for one in said if len(one) > _LETTERS and (one in whole or any(part in one for part in parts))}


def without_foreign(summary: str, heading: str, said: Sequence[str]) -> str:
    """Returns a summary with a count in place of the rules that the user never said.

    Args:
        said: the sentences of the user in the summarised part, folded.
    """
    letters = " ".join(said)
    foreign = {at: line for at, line in quoted_lines(summary, heading) if _is_foreign(line, letters)}
    lines: list[str] = []
    for at, line in enumerate(summary.split("\n")):
        before = line.rstrip().removesuffix(foreign.get(at, "")).rstrip()
        # A rule may be on the heading's own line: then the heading stays.
        if at not in foreign or any(map(str.isalpha, before)):
            lines.append(before if at in foreign else line)
        if foreign and at == max(foreign):
            lines.append(f"({counted(len(foreign), 'line')} left out: no message of the user in this part says so.)")
    return "\n".join(lines)


def _is_foreign(line: str, letters: str) -> bool:
    """Returns True if most words of a line are in none of these sentences; False for one word, such as "none"."""
    words = [word for word in map(folded, line.split()) if len(word) > 2]
    return len(words) > 1 and 2 * sum(word in letters for word in words) < len(words)


def folded(text: str) -> str:
    """Returns the letters and digits of a text, without case and accents."""
    return "".join(filter(str.isalnum, decomposed(flat(text)).casefold()))
