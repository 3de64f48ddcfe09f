"""User directives, kept in the user's own words: merged, taken back, shortened and shared out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from context_summarize.facts.demands import demanded, lasts
from context_summarize.facts.patterns import holds, one_line
from context_summarize.facts.withdrawals import in_force, is_bare, is_withdrawal

DIRECTIVES_LINE = "Standing rules, in the user's own words:"
TAKES_BACK = "(takes an earlier rule back)"
MAX_DIRECTIVE = 200
"""Most characters of a directive; of a longer sentence the part around the directive's word is kept."""
MOST = 400
"""Directives of one segment that are looked at, the newest ones."""

FEW = 400
"""Tokens of about fifteen directives, which a small window has room for too."""

_LENGTHS = (MAX_DIRECTIVE, 150, 110, 80)
"""Characters to which directives are shortened, step by step, before any is left out."""
_CUT = "[…]"
_ONE_TASK = re.compile(
    r"(?i)\b(?:this (?:time|one|step|task|file|function|page|commit|flight|booking|order|test)|for now|right now|"
    r"now(?! on)|"
    r"today(?! on)|tonight|tomorrow|yet|just (?:this|once)|at the moment)\b"
)
_TELLING = re.compile(
    r"(?i)\b(?:always|never|must|do not|don't|from now on|only ever|under no circumstances|every time|whenever|"
    r"no matter what)\b"
)


def merge_directives(children: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The directives of neighbours, oldest first, as one list, without what a later one replaces or takes back."""
    return latest([directive for child in children for directive in child])


def latest(directives: Sequence[str]) -> tuple[str, ...]:
    """The directives, oldest first, without those that a later one replaces or takes back."""
    return tuple(one for one, stands in zip(directives, in_force(directives), strict=True) if stands)


def fitting_directives(directives: Sequence[str], max_tokens: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """The directives that fit into `max_tokens` when formatted, oldest first.

    Long ones are shortened before any is left out. Then those that bind least are left out: what is said of one task
    before what lasts, and older before newer.
    """
    return _fitting([directives], max_tokens, count)[0]


def share_out(
    nodes: Sequence[Sequence[str]], max_tokens: int, count: Callable[[str], int]
) -> tuple[tuple[str, ...], ...]:
    """The directives of the nodes of one view that are in force, so that all together fit `max_tokens`.

    What a later node repeats, replaces or takes back is left out of the older one. Long ones are shortened before any
    is left out; then those that bind least go, older before newer. Deterministic; and without withdrawals monotone: if
    a list of nodes leaves a directive out of a node, no longer list adds it again.
    """
    flat = [directive for directives in nodes for directive in directives]
    stands = iter(in_force(flat))
    standing = [[one for one in directives if next(stands) and not is_bare(one)] for directives in nodes]
    return _fitting(standing, max_tokens, count)


def _fitting(
    nodes: Sequence[Sequence[str]], max_tokens: int, count: Callable[[str], int]
) -> tuple[tuple[str, ...], ...]:
    held: list[tuple[str, ...]] = []
    for length in _LENGTHS:
        held = [tuple(_cut_to(directive, length) for directive in directives) for directives in nodes]
        if _size(held, count) <= max_tokens:
            return tuple(held)
    order = sorted(
        ((node, at) for node, directives in enumerate(held) for at in range(len(directives))),
        key=lambda place: (-_binding(held[place[0]][place[1]]), -place[0], -place[1]),
    )
    kept = _first_that_fit(order, held, max_tokens, count)
    while kept:
        chosen = set(kept)
        shares = [
            tuple(one for at, one in enumerate(directives) if (node, at) in chosen)
            for node, directives in enumerate(held)
        ]
        if _size(shares, count) <= max_tokens:
            return tuple(shares)
        kept = kept[:-1]
    return tuple(() for _ in nodes)


def _first_that_fit(
    order: Sequence[tuple[int, int]], held: Sequence[Sequence[str]], max_tokens: int, count: Callable[[str], int]
) -> list[tuple[int, int]]:
    """The first places whose lines, with a heading a node, fit; by the sum of the lines' own sizes."""
    heading = count(DIRECTIVES_LINE + "\n")
    headed: set[int] = set()
    used = 0
    for index, (node, at) in enumerate(order):
        used += count(_line(held[node][at])) + (0 if node in headed else heading)
        headed.add(node)
        if used > max_tokens:
            return list(order[:index])
    return list(order)


def _size(nodes: Sequence[Sequence[str]], count: Callable[[str], int]) -> int:
    return sum(count(format_directives(directives)) for directives in nodes)


def _binding(directive: str) -> int:
    """How much a directive binds: 3 for a withdrawal, 2 for what lasts, 0 for what is said of one task."""
    if is_withdrawal(directive):
        return 3
    plain = directive.replace("’", "'")
    if _TELLING.search(plain) or lasts(plain):
        return 2
    return 0 if _ONE_TASK.search(plain) else 1


def _cut_to(directive: str, length: int) -> str:
    if len(directive) <= length:
        return directive
    inner = directive.removeprefix(f"{_CUT} ").removesuffix(f" {_CUT}")
    plain = inner.replace("’", "'")
    found = _TELLING.search(plain)
    at = found.start() if found else demanded(plain) or 0
    return shortened(inner, at, length)


def format_directives(directives: Sequence[str], text: str = "") -> str:
    """The directives as shown after a summary's text, one per line, without those that the text holds literally.

    Each stands in quotation marks: in a system row it is what the user has said, not an instruction of the host.
    """
    flat = one_line(text)
    lines = [_line(directive) for directive in directives if not (flat and holds(flat, directive))]
    return "\n".join([DIRECTIVES_LINE, *lines]) if lines else ""


def _line(directive: str) -> str:
    """The directive between quotation marks that it does not hold, where there are such."""
    quoted = f"“{directive}”" if '"' in directive else f'"{directive}"'
    return f"- {quoted} {TAKES_BACK}" if is_withdrawal(directive) else f"- {quoted}"


def directives_room(summary_tokens: int, source_tokens: int | None = None) -> int:
    """Tokens of directives that one node of any level may hold: at least 2 % of the budget, at most 4 %, or `FEW`.

    A summary of level 0 has a tenth of a segment, and a segment has at least 1/√2 of an eighth of the budget, so 9/4
    of a level-0 summary is 2 % of the budget or more. The nodes of a view share 2 %, or `FEW` in a small window. In
    a node of level 0, directives take at most half of its source (`source_tokens`).
    """
    room = max(int(summary_tokens * 9 / 4), min(FEW, 4 * summary_tokens))
    return room if source_tokens is None else min(room, source_tokens // 2)


def shortened(sentence: str, at: int, most: int = MAX_DIRECTIVE) -> str:
    """The sentence, or at most `most` characters of it around position `at`, cut between words if possible."""
    if len(sentence) <= most:
        return sentence
    room = most - 2 * (len(_CUT) + 1)
    start = 0 if at <= room // 2 else at - room // 4
    end = min(len(sentence), start + room)
    if start:
        start = next((i + 1 for i in range(start, min(start + 30, at)) if sentence[i] == " "), start)
    if end < len(sentence):
        end = next((i for i in range(end, end - 30, -1) if sentence[i] == " "), end)
    head, tail = f"{_CUT} " if start else "", f" {_CUT}" if end < len(sentence) else ""
    return f"{head}{sentence[start:end].strip()}{tail}"
