"""Fallback summaries: code quotes the agent's closing words, its calls with their last results, and the user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise

from context_summarize.messages.rows import Call
from context_summarize.notes.prose import GAP, cut, flat, sentences_of
from context_summarize.notes.reading import SENTENCE, texts_of
from context_summarize.tokens.measure import Count
from context_summarize.transcript.groups import PartRow

FALLBACK_LINE = "Fallback summary by code: no model summary was available."
USER, AGENT, CALL = "The user: ", "The agent: ", "Call: "
"""The beginning of a line of each."""
_SHORT = 120
"""Characters of the longest argument or result in a line."""
_OF_AGENT = 0.6
"""Share of the room that the agent's lines get before the user's, which the thread may hold."""


def fallback_text(rows: Sequence[PartRow], max_tokens: int, count: Count) -> str:
    """Returns a summary of at most `max_tokens` without a model."""
    return _fitted([[*_lines(rows)]], max_tokens, count)


def join_fallbacks(texts: Sequence[str], max_tokens: int, count: Count) -> str:
    """Returns one text of at most `max_tokens` from those of neighbouring nodes, oldest first; both ends of each."""
    parts = [[line for line in text.split("\n") if line not in ("", FALLBACK_LINE, GAP)] for text in texts]
    return _fitted(parts, max_tokens, count)


def without_quoted(text: str, thread: str) -> str:
    """Returns a summary without the lines of the user that the thread holds whole; one gap stands for several."""

    def is_held(line: str) -> bool:
        said = line.removeprefix(USER)
        return said != line and all(one in thread for one in sentences_of(said))

    kept = [line for line in text.split("\n") if not is_held(line)]
    return "\n".join(line for before, line in pairwise(["", *kept]) if not before == line == GAP)


def _lines(rows: Sequence[PartRow]) -> Iterator[str]:
    """Yields a line for each message of the user, and for what the agent said last and called before the next one."""
    closing, alone, calls = "", "", dict[str, str]()
    for row in rows:
        if row.role == "assistant":
            closing = row.said.strip() or closing
            made = [_call(text.call) for text in row.texts if text.call]
            calls = {call: told for call, told in calls.items() if call not in made} | dict.fromkeys(made, "")
            alone = made[0] if len(made) == 1 else ""  # of several calls it is not known which one a result answers
        elif row.role == "tool" and alone:
            calls[alone] = cut(next(filter(str.strip, row.text.split("\n")[::-1]), ""), _SHORT)
            alone = ""
        elif row.role == "user" and (said := flat(row.said)):
            yield from _turn(calls, closing)
            closing, calls = "", {}
            yield USER + cut(said, SENTENCE)
    yield from _turn(calls, closing)


def _call(call: Call) -> str:
    short = (flat(text) for text in texts_of(call.arguments) if len(text) <= _SHORT)
    return f"{CALL}{call.name} {next(short, '')}".strip()


def _turn(calls: Mapping[str, str], closing: str) -> Iterator[str]:
    for call, result in calls.items():
        # The last line of a file says little, so a result stands only behind a command or a question.
        yield f"{call} → {result}" if result and call.count(" ") > 2 else call
    if closing:
        yield AGENT + cut(closing, SENTENCE)


def _fitted(parts: Sequence[Sequence[str]], max_tokens: int, count: Count) -> str:
    """Returns all lines if they fit; else the agent's words first, then its newest calls, then the user's words.

    Words are taken from both ends of each part inwards, those of the newest part first.
    """
    lines = [*chain.from_iterable(parts)]
    if count(text := "\n".join([FALLBACK_LINE, *lines])) <= max_tokens:
        return text
    within = [min(at, len(part) - 1 - at) for part in parts for at in range(len(part))]
    words = sorted(range(len(lines)), key=lambda at: (within[at], -at))
    calls = [at for at in reversed(range(len(lines))) if lines[at].startswith(CALL)]
    user = [at for at in words if lines[at].startswith(USER)]
    known = {*calls, *user}
    others = [*(at for at in words if at not in known), *calls]
    taken, gap = set[int](), count(GAP) + 1
    room = max_tokens - count(FALLBACK_LINE) - gap
    for some, reserved in ((others, room - int(room * _OF_AGENT)), (user, 0), (others, 0)):
        for at in some:
            if at not in taken and (size := count(lines[at]) + 1 + gap) <= room - reserved:
                taken.add(at)
                room -= size
    shown = [lines[at] if at in taken else GAP for at in range(len(lines))]
    if taken:
        return "\n".join([FALLBACK_LINE, *(line for line, _ in groupby(shown))])
    return FALLBACK_LINE if count(FALLBACK_LINE) <= max_tokens else ""
