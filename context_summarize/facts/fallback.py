"""Fallback summaries: a transcript summarised by code alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from context_summarize.background import Steps, finished
from context_summarize.facts.extraction import extract_facts, head_and_tail
from context_summarize.facts.fact import Fact
from context_summarize.facts.ledger import ledger_steps
from context_summarize.facts.ledger_lines import LEDGER_LINE, format_ledger
from context_summarize.facts.patterns import one_line, shortened
from context_summarize.tokens.measure import Count
from context_summarize.transcript.calls import calls_in
from context_summarize.transcript.rows import RenderedRow

FALLBACK_LINE = "Fallback summary by code: no model summary was available."
_SAID_LINE = "The user said:"
_HEADINGS = (_SAID_LINE, LEDGER_LINE)
_REACH = 80
"""Characters that a line gives up at most so that it does not end in the middle of a word, a path or a number."""


def fallback_text(
    rows: Sequence[RenderedRow], max_tokens: int, count: Count, facts: Sequence[Fact] | None = None
) -> str:
    """A summary of `rows` without a model: user words, calls, facts; at most `max_tokens`; see `fallback_parts`."""
    text, ledger = finished(fallback_parts(rows, max_tokens, count, extract_facts(rows) if facts is None else facts))
    return _cut_lines(f"{text}\n{format_ledger(ledger)}" if ledger else text, max_tokens, count)


def fallback_parts(
    rows: Sequence[RenderedRow], max_tokens: int, count: Count, facts: Sequence[Fact]
) -> Steps[tuple[str, tuple[Fact, ...]]]:
    """The text and the ledger of a summary without a model; at most `max_tokens` when both are shown.

    User words get at most two fifths of the tokens, calls a fifth of the remainder, facts the rest.
    """
    text = FALLBACK_LINE
    room = max_tokens - count(text)
    if asked := _user_lines(rows, room * 2 // 5, count):
        text += f"\n{_SAID_LINE}\n" + "\n".join(asked)
    yield
    room = max_tokens - count(text)
    if called := _cut_lines(_call_lines(rows), room // 5, count):
        text += "\n" + called
    text = _cut_lines(text, max_tokens, count)
    rest = [fact for fact in facts if not (fact.kind == "user" and asked)]
    yield
    return text, (yield from ledger_steps(rest, text, max_tokens - count(text) - 2, count))


def join_fallbacks(texts: Sequence[str], max_tokens: int, count: Count) -> str:
    """The texts of neighbouring nodes, oldest first, as one text of at most `max_tokens`; see `joining_steps`."""
    return finished(joining_steps(texts, max_tokens, count))


def joining_steps(texts: Sequence[str], max_tokens: int, count: Count) -> Steps[str]:
    """The texts of neighbouring nodes, oldest first, as one text of at most `max_tokens`.

    A text that is too long keeps its first lines. The newest text's share is one and a half times the oldest's. A
    short text leaves its unused share to the others. The first line of fallback summaries appears once, and so does the
    heading of user words that follow each other. A heading that would stand over nothing is left out.
    """
    bodies = [text.removeprefix(FALLBACK_LINE).strip() for text in texts]
    head = FALLBACK_LINE + "\n\n" if any(text.startswith(FALLBACK_LINE) for text in texts) else ""
    bodies = [body for body in bodies if body]
    whole = ""
    for body in bodies:
        whole = _with_body(whole, body, None)
    whole = (head + whole).strip()
    if count(whole) <= max_tokens:
        return whole
    room = max_tokens - count(head) - len(bodies)
    yield
    shares = _shares([count(body) for body in bodies], max(room, 0))
    text = ""
    for body, share in zip(bodies, shares, strict=True):
        yield
        text = _with_body(text, body, partial(_cut_lines, room=share, count=count))
    yield
    return _cut_lines((head + text).strip(), max_tokens, count)


def _with_body(text: str, body: str, cut: Callable[[str], str] | None) -> str:
    """The text and, behind it, what `cut` leaves of a body; user words go on in the list that the text ends in."""
    goes_on = body.startswith(f"{_SAID_LINE}\n- ") and _ends_in_user_words(text)
    body = body.removeprefix(f"{_SAID_LINE}\n") if goes_on else body
    body = _without_empty_headings(cut(body) if cut else body)
    between = "\n" if goes_on else "\n\n"
    return between.join(part for part in (text, body) if part)


def _ends_in_user_words(text: str) -> bool:
    lines = text.split("\n")
    while len(lines) > 1 and lines[-1].startswith("- "):
        lines.pop()
    return lines[-1] == _SAID_LINE


def _without_empty_headings(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip() != "-"]
    kept = [line for line, below in pairwise([*lines, ""]) if line not in _HEADINGS or below.strip()]
    return "\n".join(kept).strip()


def _user_lines(rows: Sequence[RenderedRow], room: int, count: Count) -> list[str]:
    """The newest user messages that fit, one per line, in conversation order."""
    lines: list[str] = []
    for row in reversed(rows):
        if row.role != "user" or not row.text.strip():
            continue
        line = f"- {one_line(head_and_tail(row.text.strip()))}"
        room -= count(line + "\n")
        if room < 0:
            break
        lines.append(line)
    return lines[::-1]


def _call_lines(rows: Sequence[RenderedRow]) -> str:
    """Tool names with counts on one line, then the latest calls, newest first."""
    calls = [call for row in rows if row.role == "assistant" for call in calls_in(row.text)]
    if not calls:
        return ""
    totals = Counter(name for name, _ in calls).most_common()
    counted = ", ".join(f"{one_line(name)} ({times})" if times > 1 else one_line(name) for name, times in totals)
    newest = [shortened(one_line(f"{name}({arguments}"), 100) + ")" for name, arguments in reversed(calls[-8:])]
    return "\n".join([f"Calls made: {counted}", f"Newest: {newest[0]}", *(f"Before it: {call}" for call in newest[1:])])


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much of `room` each text gets; see `join_fallbacks`."""
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
    """The start of `text` that fits `room`. It ends at a line end, or with a word if that would lose half of it."""
    cut = _cut(text, room, count)
    if len(cut) < len(text) and text[len(cut)] != "\n":
        head = cut.rpartition("\n")[0]
        cut = _cut(head if 2 * len(head) >= len(cut) else _to_word_end(text, len(cut)), room, count)
    return cut.rstrip() if count(cut.rstrip()) <= room else cut


def _to_word_end(text: str, length: int) -> str:
    """At most so many characters of the text: its last line ends with a word if it holds a whole one within reach."""
    end = text.rfind(" ", max(0, length - _REACH), length + 1)
    line = text[text.rfind("\n", 0, length) + 1 : max(end, 0)]
    return text[: end if any(map(str.isalnum, line)) else length]


def _cut(text: str, room: int, count: Count) -> str:
    while text and (size := count(text)) > room:
        text = text[: min(len(text) - 1, max(len(text) * room // size, 0))]
    return text
