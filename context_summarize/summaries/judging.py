"""What an answer is: a summary, one that was cut off and stands as far as it goes, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from context_summarize.summaries.answer import Answer
from context_summarize.summaries.prompts import PromptTemplate
from context_summarize.summaries.substance import is_loop, missing_substance
from context_summarize.summaries.validation import refusal, whole_sentences
from context_summarize.tokens.measure import Count


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
    """Judges answers by their form and their substance.

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
        text = self._clean(answer.text)
        tokens = self._count(text)
        kind = refusal(answer, text, tokens, source.tokens)
        if kind is None:
            return Judged(missing_substance(text, source.text, instructions), text, tokens)
        if kind != "cut_off":
            return Judged(kind, text, tokens)
        whole = whole_sentences(text)
        size = self._count(whole)
        if not least <= size < source.tokens:
            return Judged(kind, text, tokens)
        lacking = "repeats" if is_loop(whole, source.text) else missing_substance(whole, source.text, instructions)
        if takes_cut or lacking:
            return Judged(lacking, whole, size, is_cut=lacking is None)
        return Judged(kind, whole, size, is_cut=True)
