"""What code can say of a transcript without a model: its exact facts, the ledger beside a summary, a whole digest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import log2

from context_summarize import patterns
from context_summarize.patterns import holds, one_line, shortened
from context_summarize.types import Fact, FactKind, RenderedRow

Count = Callable[[str], int]
"""Tokens of a text."""

DIGEST_LINE = "Digest made by code, no model summary was available."
LEDGER_LINE = "Exact values not to be paraphrased:"
USER_HEAD, USER_TAIL = 160, 75
"""Characters kept of user words longer than both and the mark between them."""
IDENTIFIERS: tuple[FactKind, ...] = ("id", "path", "url", "amount")
WORDS: tuple[FactKind, ...] = ("user", "command", "error")
PRIME, EXACT = 0.8, 0.65
"""Shares of a ledger's room: codes, amounts and paths; these and all other identifiers."""
SAID = 0.6
"""Share of a ledger's room for what the summaries below have said and the one above them has dropped."""

_LABELS: dict[FactKind, str] = {
    "id": "ids",
    "amount": "amounts",
    "path": "paths",
    "url": "urls",
    "user": "user said",
    "command": "commands",
    "error": "errors",
}
_HEADER = re.compile(r"^#([0-9]{1,9}) (user|assistant|tool)(?: (.*))?$")
_CUT = " […] "


@dataclass(slots=True)
class _Seen:
    count: int = 0
    row: int = 0
    order: int = 0


class _Tally:
    """Counts facts, and remembers where each was seen last."""

    def __init__(self) -> None:
        self.seen: dict[tuple[FactKind, str], _Seen] = {}
        self._order = 0

    def add(self, kind: FactKind, value: str, row: int, times: int = 1) -> None:
        """Counts one value of row number `row`."""
        self._order += 1
        seen = self.seen.setdefault((kind, value), _Seen())
        seen.count += times
        seen.row, seen.order = row, self._order

    def join_bare_amounts(self) -> None:
        """Counts the bare `1250` of a JSON value as the `$1,250` that somebody wrote, when there is one."""
        amounts = [value for kind, value in self.seen if kind == "amount"]
        written = {value[1:].strip().replace(",", ""): value for value in amounts if value[0] in "$€£¥"}
        for value in amounts:
            if value in written:
                bare, known = self.seen.pop(("amount", value)), self.seen["amount", written[value]]
                known.count += bare.count
                known.row, known.order = max((known.row, known.order), (bare.row, bare.order))

    def ranked(self, rows: int) -> tuple[Fact, ...]:
        """The facts in the ledger's order, see `extract_facts`."""
        found = [(_score((seen.row + 1) / rows, seen.count), seen.order, key) for key, seen in self.seen.items()]
        found.sort(key=lambda item: (-item[0], -item[1]))
        return tuple(Fact(kind, value, self.seen[kind, value].count) for _, _, (kind, value) in found)


def extract_facts(rows: Sequence[RenderedRow]) -> tuple[Fact, ...]:
    """What must not be paraphrased, newest and most repeated first.

    The order: each fact scores `row / rows` of its last occurrence (0…1) plus an eighth for each doubling of its count,
    at most a half; so sixteen occurrences weigh as much as half a segment of age. Ties: seen later first. The bare
    number of a JSON amount counts as the written one (`250` as `$250`) when both occur.
    """
    tally = _Tally()
    texts = [patterns.readable(row.text) for row in rows]
    codes = frozenset().union(*map(patterns.codes_in, texts))
    known: dict[str, tuple[patterns.Found, ...]] = {}
    for index, (row, text) in enumerate(zip(rows, texts, strict=True)):
        _add_identifiers(tally, index, text, codes, known)
        for line in patterns.error_lines(row.text, strict=row.role != "tool"):
            tally.add("error", line, index)
        if row.role == "user" and row.text.strip():
            tally.add("user", _head_and_tail(row.text.strip()), index)
    for index, command in patterns.commands_in(rows):
        tally.add("command", command, index)
    tally.join_bare_amounts()
    return tally.ranked(len(rows))


def identifiers(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts that `coverage` counts: paths, URLs, ids and amounts."""
    return tuple(fact for fact in facts if fact.kind in IDENTIFIERS)


def coverage(facts: Sequence[Fact], shown: str) -> float:
    """Share of the identifiers that stand in `shown` as whole words, 0…1; 1.0 when there are none."""
    wanted = identifiers(facts)
    return sum(holds(shown, fact.value) for fact in wanted) / len(wanted) if wanted else 1.0


def prose_tokens(summary_tokens: int) -> int:
    """What the model is asked for: three quarters of a summary; code writes the other part, exactly."""
    return summary_tokens * 3 // 4


def ledger_tokens(summary_tokens: int, level: int) -> int:
    """Room of the ledger beside it: as much again for a segment; a third of that for a merge, whose prose is longer."""
    return summary_tokens * 3 // 4 if level == 0 else summary_tokens // 4


def build_ledger(facts: Sequence[Fact], text: str, max_tokens: int, count: Count) -> tuple[Fact, ...]:
    """The facts that `text` does not hold, as many as fit into `max_tokens` once formatted, in the order of `facts`.

    What prose has held before comes first, in up to `SAID` of the room; then codes (short ids such as a reservation's
    or a flight's number), amounts and paths, in up to `PRIME` of it: prose loses them most often. Then the other
    identifiers up to `EXACT` of the room, then user words, commands and errors, then what is left of the identifiers.
    Within each class the kinds take turns, each giving its best next fact. A fact that does not fit is passed over, so
    that one long text does not keep shorter ones out. A user's single word without a digit ("yes") is left out: alone
    it says nothing.
    """
    flat = one_line(text)
    fresh = [fact for fact in facts if _tells(fact) and not holds(flat, one_line(fact.value))]
    said = [fact for fact in fresh if fact.said]
    prime = _in_turns([fact for fact in fresh if _is_prime(fact)], IDENTIFIERS, max_tokens)
    exact = _in_turns([fact for fact in fresh if not _is_prime(fact)], IDENTIFIERS, max_tokens)
    words = _in_turns(fresh, WORDS, max_tokens)
    room = max_tokens - count(LEDGER_LINE)
    chosen: dict[Fact, None] = {}
    kinds: set[FactKind] = set()
    spent = 0
    for candidates, bound in (
        (said, int(room * SAID)),
        (prime, int(room * PRIME)),
        (exact, int(room * EXACT)),
        (words, room),
        (prime, room),
        (exact, room),
    ):
        for fact in candidates:
            label = "" if fact.kind in kinds else f"\n{_LABELS[fact.kind]}:"
            price = count(f"{label} {_shown(fact)}") + (2 if fact.kind in WORDS else 0)
            if fact not in chosen and spent + price <= bound:
                chosen[fact] = None
                kinds.add(fact.kind)
                spent += price
    while chosen and count(format_ledger([*chosen])) > max_tokens:
        chosen.popitem()
    return tuple(fact for fact in fresh if fact in chosen)


def format_ledger(ledger: Sequence[Fact]) -> str:
    """The ledger as it is shown: one line a kind, each value on one line; "" when it is empty.

    Identifiers stand apart by blanks alone, the cheapest mark in tokens, unless one of the line holds a blank itself.
    """
    lines = []
    for kind, label in _LABELS.items():
        if values := [_shown(fact) for fact in ledger if fact.kind == kind]:
            mark = " | " if kind in WORDS else ", " if any(" " in value for value in values) else " "
            lines.append(f"{label}: {mark.join(values)}")
    return "\n".join([LEDGER_LINE, *lines]) if lines else ""


def merge_facts(children: Sequence[Sequence[Fact]]) -> tuple[Fact, ...]:
    """The ledgers of neighbours, oldest first, as one: counts added, newest and most repeated first.

    The score is that of `extract_facts`, the place of a fact being its rank in the newest child that has it.
    """
    counts: Counter[tuple[FactKind, str]] = Counter()
    said = {(fact.kind, fact.value) for child in children for fact in child if fact.said}
    places: dict[tuple[FactKind, str], float] = {}
    for index, child in enumerate(children):
        for rank, fact in enumerate(child):
            counts[fact.kind, fact.value] += fact.count
            places[fact.kind, fact.value] = (index + 1 - rank / len(child)) / len(children)
    order = sorted(places, key=lambda key: (-_score(places[key], counts[key]), -places[key], key))
    return tuple(Fact(kind, value, counts[kind, value], (kind, value) in said) for kind, value in order)


def digest_text(rows: Sequence[RenderedRow], max_tokens: int, count: Count) -> str:
    """All that is said of `rows` where no model could be had: user words, calls, facts; never above `max_tokens`.

    User words get at most two fifths of the room, calls a fifth of what is then left, facts the rest.
    """
    facts = extract_facts(rows)
    text = DIGEST_LINE
    room = max_tokens - count(text)
    if asked := _user_lines(rows, room * 2 // 5, count):
        text += "\nThe user said:\n" + "\n".join(asked)
    room = max_tokens - count(text)
    if called := _cut_lines(_call_lines(rows), room // 5, count):
        text += "\n" + called
    rest = [fact for fact in facts if not (fact.kind == "user" and asked)]
    if ledger := format_ledger(build_ledger(rest, text, max_tokens - count(text) - 1, count)):
        text += "\n" + ledger
    return _cut_lines(text, max_tokens, count)


def join_digests(texts: Sequence[str], max_tokens: int, count: Count) -> str:
    """The texts of neighbouring nodes, oldest first, as one text of at most `max_tokens`.

    What is too long keeps its head, line-wise. The newest text's share is half as large again as the oldest's; what a
    short text does not need goes to the others. The digests' first line is said once.
    """
    bodies = [text.removeprefix(DIGEST_LINE).strip() for text in texts]
    head = DIGEST_LINE + "\n\n" if any(text.startswith(DIGEST_LINE) for text in texts) else ""
    bodies = [body for body in bodies if body]
    whole = (head + "\n\n".join(bodies)).strip()
    if count(whole) <= max_tokens:
        return whole
    room = max_tokens - count(head) - len(bodies)
    shares = _shares([count(body) for body in bodies], max(room, 0))
    cut = [_cut_lines(body, share, count) for body, share in zip(bodies, shares, strict=True)]
    return _cut_lines((head + "\n\n".join(body for body in cut if body)).strip(), max_tokens, count)


def render_rows(rows: Sequence[RenderedRow]) -> str:
    """The transcript format: `#N role` or `#N tool NAME`, the text, and a blank line between blocks."""
    return "\n\n".join(f"#{row.number} {row.role}{_name_mark(row)}\n{row.text}" for row in rows)


def parse_rendered(text: str) -> tuple[RenderedRow, ...]:
    """The rows of a rendered transcript; what stands before its first header is left out.

    A header line counts only when its number follows the previous block's, so that a quoted one starts no block unless
    its number fits.
    """
    rows: list[RenderedRow] = []
    lines: list[str] = []
    for line in text.split("\n"):
        match = _HEADER.fullmatch(line)
        if match is None or (rows and int(match[1]) != rows[-1].number + 1):
            lines.append(line)
            continue
        if rows:
            rows[-1] = replace(rows[-1], text="\n".join(lines[:-1] if lines and not lines[-1] else lines))
        rows.append(RenderedRow(int(match[1]), match[2], match[3], ""))
        lines = []
    if rows:
        rows[-1] = replace(rows[-1], text="\n".join(lines))
    return tuple(rows)


def _name_mark(row: RenderedRow) -> str:
    return "" if row.name is None else " " + row.name.replace("\n", " ")


def _score(place: float, count: int) -> float:
    return place + min(log2(max(count, 1)), 4.0) / 8


def _add_identifiers(
    tally: _Tally, index: int, text: str, codes: frozenset[str], known: dict[str, tuple[patterns.Found, ...]]
) -> None:
    """Counts URLs, amounts, ids and paths of one row; `known` keeps what is known of a token."""
    if "://" in text:
        for url in map(patterns.trimmed_url, patterns.URL.findall(text)):
            if url:
                tally.add("url", url, index)
        text = patterns.URL.sub(" ", text)
    for token, times in Counter(patterns.TOKEN.findall(text)).items():
        found = known.get(token)
        if found is None:
            found = known[token] = patterns.classify(token, codes)
        for kind, value in found:
            tally.add(kind, value, index, times)
    for amount in patterns.amounts_in(text):
        tally.add("amount", amount, index)


def _shown(fact: Fact) -> str:
    return f'"{one_line(fact.value)}"' if fact.kind == "user" else one_line(fact.value)


def _is_prime(fact: Fact) -> bool:
    return fact.kind in ("amount", "path") or (fact.kind == "id" and patterns.is_code(fact.value))


def _tells(fact: Fact) -> bool:
    """False for a user's lone word; scripts beyond ASCII may do without blanks."""
    words = one_line(fact.value)
    return fact.kind != "user" or " " in words or not words.isascii() or any(map(str.isdigit, words))


def _in_turns(facts: Sequence[Fact], kinds: Sequence[FactKind], most: int) -> list[Fact]:
    """The best `most` facts, the kinds taking turns; no fact is cheaper than a token, so more are not needed."""
    columns = [[fact for fact in facts if fact.kind == kind] for kind in kinds]
    return [fact for turn in zip_longest(*columns) for fact in turn if fact is not None][: max(most, 0)]


def _head_and_tail(text: str) -> str:
    if len(text) <= USER_HEAD + len(_CUT) + USER_TAIL:
        return text
    return text[:USER_HEAD].rstrip() + _CUT + text[-USER_TAIL:].lstrip()


def _user_lines(rows: Sequence[RenderedRow], room: int, count: Count) -> list[str]:
    """User words as lines in the order of the conversation: the newest that fit."""
    lines: list[str] = []
    for row in reversed(rows):
        if row.role != "user" or not row.text.strip():
            continue
        line = f"- {one_line(_head_and_tail(row.text.strip()))}"
        room -= count(line + "\n")
        if room < 0:
            break
        lines.append(line)
    return lines[::-1]


def _call_lines(rows: Sequence[RenderedRow]) -> str:
    """Names with counts on one line, then the newest calls, newest first."""
    calls = [call for row in rows if row.role == "assistant" for call in patterns.calls_in(row.text)]
    if not calls:
        return ""
    totals = Counter(name for name, _ in calls).most_common()
    counted = ", ".join(f"{one_line(name)} ({times})" if times > 1 else one_line(name) for name, times in totals)
    newest = [shortened(one_line(f"{name}({arguments}"), 100) + ")" for name, arguments in reversed(calls[-8:])]
    return "\n".join([f"Calls made: {counted}", f"Newest: {newest[0]}", *(f"Before it: {call}" for call in newest[1:])])


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much of `room` each text gets, see `join_digests`."""
    weights = {index: 1 + 0.5 * index / max(len(sizes) - 1, 1) for index in range(len(sizes))}
    shares = [0] * len(sizes)
    while weights:
        unit = room / sum(weights.values())
        content = [index for index, weight in weights.items() if sizes[index] <= unit * weight]
        if not content:
            for index, weight in weights.items():
                shares[index] = int(unit * weight)
            break
        for index in content:
            shares[index] = sizes[index]
            room -= sizes[index]
            del weights[index]
    return shares


def _cut_lines(text: str, room: int, count: Count) -> str:
    """The head of `text` that fits `room`, ending at a line's end unless that would lose half of it."""
    cut = _cut(text, room, count)
    if len(cut) < len(text) and text[len(cut)] != "\n":
        head = cut.rpartition("\n")[0]
        cut = _cut(head, room, count) if 2 * len(head) >= len(cut) else cut
    return cut.rstrip() if count(cut.rstrip()) <= room else cut


def _cut(text: str, room: int, count: Count) -> str:
    while text and (size := count(text)) > room:
        text = text[: min(len(text) - 1, max(len(text) * room // size, 0))]
    return text
