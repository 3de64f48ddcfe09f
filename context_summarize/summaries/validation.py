"""Judges a provider's answer by its form: a summary, one that was cut off and stands as far as it goes, or none. Pure.

What an answer says is not judged: no list of words tells a bad summary from a good one in every language. What code
keeps beside the summary holds the exact values, whatever a model writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from context_summarize.summaries.answer import Answer
from context_summarize.summaries.prompts import PromptTemplate
from context_summarize.tokens.measure import Count

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "incomplete"})
_REFUSED = frozenset({"refusal", "content_filter", "safety", "blocked"})
_FAILED = frozenset({"error", "failed", "cancelled"})
_DECLINES = re.compile(
    r"^\W*(?:i['’]?m (?:really |very )?sorry|sorry,|i (?:can ?not|can['’]?t|won['’]?t|am unable|am not able)"
    r"|as an ai\b|i must decline|unable to comply)",
    re.IGNORECASE,
)
_SHORT = 400
"""Longest answer, in characters, that may count as a refusal in words; a real summary is longer."""
_GOES_ON = re.compile(
    r"[\s>*_`]*(?:#{1,6}[ \t]*summary \d+ of \d+\b|#\d+ (?:user|assistant|tool)\b|=== transcript [0-9a-f]{20} ===)",
    re.IGNORECASE,
)
"""How an answer opens that goes on with the request. Further down such lines may stand: a frame quotes them."""
_LINE = 20
"""Characters; a shorter line may be one of the instructions by chance."""
_LOOP = 100
"""Characters that repeat, at the least."""
_TIMES = 4
"""Times that a model which cannot end says one thing, at the least."""
_MOST_READ = 20_000
"""Characters at the end of an answer that are looked at for a loop."""
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[\u3002\uff01\uff1f]|(?<=\S)(?=\n)")

REASONS: Mapping[str, str] = {
    "tool_calls": "it calls tools",
    "refusal": "the model declined",
    "failed": "the provider says that it failed",
    "cut_off": "it filled the room that it was given and did not end",
    "empty": "it holds no text",
    "not_smaller": "it is as long as what it summarises",
    "copied": "it repeats the request",
    "repeats": "it says the same again and again",
}
"""What the words for why an answer is no summary mean."""


@dataclass(frozen=True, slots=True)
class Source:
    """What one request shows: its text, its size in tokens, and how it is to be summarised."""

    text: str
    tokens: int
    template: PromptTemplate
    count: int
    """Texts that are joined."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What an answer was judged to be."""

    kind: str | None
    """One word for why it is no summary; None if it is one."""
    text: str
    tokens: int
    is_cut: bool = False
    """True where the answer was cut off, and may stand up to its last whole sentence, which is where `text` ends."""


class AnswerJudge:
    """Judges answers.

    Args:
        clean: removes secrets.
    """

    def __init__(self, clean: Callable[[str], str], count: Count) -> None:
        self._clean = clean
        self._count = count

    def __call__(self, answer: Answer, source: Source, instructions: str, least: int, *, takes_cut: bool) -> Judged:
        """What an answer is.

        Args:
            least: tokens that one must have which was cut off, to stand as far as it goes.
            takes_cut: such a one is taken for a summary; else it is refused as `cut_off`, with `is_cut`.
        """
        if len(answer.text) > 8 * len(source.text) + 4_096:
            return Judged("not_smaller", "", source.tokens)  # too long to be read, let alone counted
        said = self._clean(answer.text)
        text = _unlooped(said, source.text)
        tokens = self._count(text)
        kind = _told(answer)
        if said and not text and kind in (None, "cut_off"):
            kind = "repeats"
        if kind is None:
            return Judged(_form(text, source, instructions, tokens < source.tokens), text, tokens)
        if kind != "cut_off":
            return Judged(kind, text, tokens)
        whole = _whole_sentences(text)
        size = self._count(whole)
        if not least <= size < source.tokens:
            return Judged(kind, text, tokens)
        lacking = _form(whole, source, instructions, is_smaller=True)
        if takes_cut or lacking:
            return Judged(lacking, whole, size, is_cut=lacking is None)
        return Judged(kind, whole, size, is_cut=True)


def _told(answer: Answer) -> str | None:
    """Why an answer is no summary, as far as the provider tells it."""
    if answer.calls_tools:
        return "tool_calls"
    told = {"refusal": _REFUSED, "failed": _FAILED, "cut_off": _CUT_OFF}
    return next((kind for kind, words in told.items() if answer.finish in words), None)


def _form(text: str, source: Source, instructions: str, is_smaller: bool) -> str | None:
    """Why a text is no summary, as far as its form shows it."""
    if not text:
        return "empty"
    if len(text) <= _SHORT and _DECLINES.match(text):
        return "refusal"
    if not is_smaller:
        return "not_smaller"
    if _GOES_ON.match(text) or _is_copied(text, instructions):
        return "copied"
    return None


def _is_copied(text: str, instructions: str) -> bool:
    """True if every line of a text, short ones aside, stands in the instructions."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > _LINE]
    return bool(lines) and all(line in instructions for line in lines)


def _unlooped(text: str, source: str) -> str:
    """The text up to where it begins to say one thing again and again, to its end; "" where little is left.

    That is so where the second half of a text, or more of it, says one thing four times or more, to the letter. What
    the source says as often is quoted.
    """
    loop, period = _loop_of(" ".join(text.split()))
    if not period or " ".join(source.split()).count(loop[: max(period, _LINE)]) >= _TIMES:
        return text
    words = len(text.split()) - len(loop[period:].split())
    ends = [found.end() for found in re.finditer(r"\S+", text)]
    kept = _whole_sentences(text[: ends[words - 1]]) if words else ""
    return kept if len(kept) >= _LOOP else ""


def _loop_of(text: str) -> tuple[str, int]:
    """The end of a text that says one thing again and again, and the length of that thing; 0 where there is none."""
    back = text[-_MOST_READ:][::-1]
    # The prefix function of the reversed text: `same[i]` characters at its start end again at i, so that its first
    # i + 1 characters repeat every i + 1 - same[i]. Where these are half of the text, its last half is a loop.
    same = [0] * len(back)
    loop, period = "", 0
    for at in range(1, len(back)):
        length = same[at - 1]
        while length and back[at] != back[length]:
            length = same[length - 1]
        same[at] = length + (back[at] == back[length])
        size = at + 1
        if size >= max(_LOOP, len(back) / 2) and (size - same[at]) * _TIMES <= size:
            loop, period = back[:size][::-1], size - same[at]
    return loop, period


def _whole_sentences(text: str) -> str:
    """The text up to the end of its last whole sentence or line; "" where there is none."""
    end = 0
    for found in _SENTENCE_END.finditer(text):
        end = found.end()
    return text[:end].rstrip()
