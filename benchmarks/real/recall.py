"""How much of a question's evidence one answer of `recall` holds: `python -m benchmarks.real.recall`.

A question is asked as it stands. Its evidence is the messages that the data set names as its sources. A message is
found where the answer quotes it: at least a hundred characters of it in one piece, or all of it. *Evidence* is the mean
share of a question's messages that are found. *Key* counts only those whose sentence with most of the words of
question and answer is quoted; *any* counts questions of which one message is found; *gold* those with all values of
the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.real import beam, locomo
from benchmarks.real.chats import Chat, DataMissingError, Question
from benchmarks.real.scoring import score, telling_words
from context_summarize.core.history import History
from context_summarize.messages.checking import normalise
from context_summarize.messages.reading import analyse
from context_summarize.recall.desk import RecallDesk
from context_summarize.recall.query import RecallQuery
from context_summarize.recall.search import MAX_CHARS, MAX_WORDS
from context_summarize.tokens.counter import TokenCounter

LIMIT = 1_600
"""Tokens of an answer."""
_PIECE = 100
"""Characters of a message that an answer must hold in one piece."""
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_CUT = re.compile(r" …$|^… |\n\[…\]\n", re.MULTILINE)
_HEADER = re.compile(r"(?m)^#(\d+) (?:user|assistant)\n")


@dataclass(slots=True)
class Figures:
    """What came of the questions about one data set."""

    evidence: list[float] = field(default_factory=list)
    key: list[float] = field(default_factory=list)
    any: list[float] = field(default_factory=list)
    gold: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)


async def measure(chats: Iterable[Chat], kinds: Sequence[str] | None, *, indexed: bool = True) -> Figures:
    """Ask every question that has sources, of these kinds, or of all."""
    count, figures = TokenCounter().count, Figures()
    for chat in chats:
        desk, history = RecallDesk(count, indexed=indexed), History()
        for row in chat.rows():
            history.add(analyse(normalise(row)))
        await desk.answer(history, (), 0, RecallQuery(words="first"), LIMIT)  # builds the index
        for question in chat.questions:
            if question.sources and (kinds is None or question.kind in kinds):
                started = time.perf_counter()
                answer = await desk.answer(history, (), 0, RecallQuery(words=_asked(question)), LIMIT)
                figures.milliseconds.append(1_000 * (time.perf_counter() - started))
                figures.tokens.append(answer.tokens)
                _add(figures, chat, question, answer.text)
        await desk.close()
    return figures


def _asked(question: Question) -> str:
    """The question, without the end that a query has no room for."""
    words = question.text.split()[:MAX_WORDS]
    while len(" ".join(words)) > MAX_CHARS:
        words.pop()
    return " ".join(words)


def _add(figures: Figures, chat: Chat, question: Question, text: str) -> None:
    quoted = _quoted(text)
    asked = telling_words(f"{question.text} {question.answer}")
    found = [_holds(quoted.get(at + 1, []), chat.messages[at].content) for at in question.sources]
    key = [_key(chat.messages[at].content, asked) in _flat(" ".join(quoted.get(at + 1, []))) for at in question.sources]
    figures.evidence.append(sum(found) / len(found))
    figures.key.append(sum(key) / len(key))
    figures.any.append(any(found))
    if question.golds:
        figures.gold.append(score(text, telling_words(question.text), question.golds).in_view)


def _quoted(text: str) -> dict[int, list[str]]:
    """What an answer quotes of each message, by its number."""
    parts = _HEADER.split(text.rpartition("\n=== transcript ends ===")[0])
    return {int(number): _CUT.split(said.strip()) for number, said in zip(parts[1::2], parts[2::2], strict=True)}


def _holds(pieces: Sequence[str], message: str) -> bool:
    whole = _flat(message)
    return any(piece in whole and len(piece) >= min(_PIECE, len(whole)) for piece in map(_flat, pieces))


def _key(message: str, asked: set[str]) -> str:
    sentences = [part for part in map(_flat, _SENTENCE.split(message)) if len(part) > 15]
    return max(sentences, key=lambda part: len(asked & telling_words(part)), default=_flat(message))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _line(name: str, figures: Figures) -> str:
    def mean(values: Sequence[float]) -> float:
        return sum(values) / max(1, len(values))

    shares = (f"{100 * mean(values):5.1f} %" for values in (figures.evidence, figures.key, figures.any, figures.gold))
    slowest = sorted(figures.milliseconds)[len(figures.milliseconds) * 95 // 100]
    return (
        f"{name:<10} {len(figures.evidence):>9} {' '.join(f'{share:>9}' for share in shares)}"
        f" {mean(figures.tokens):>7.0f} {mean(figures.milliseconds):>6.1f} {slowest:>7.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.recall", description="one recall a question")
    parser.add_argument("--all-kinds", action="store_true", help="of BEAM also questions whose answer is no value")
    parser.add_argument("--plain", action="store_true", help="without an index, as where SQLite lacks FTS5")
    options = parser.parse_args(arguments)
    kinds = None if options.all_kinds else tuple(sorted(beam.EXACT))
    try:
        sets = [(f"BEAM-{size}", beam.load_all(size), kinds) for size in beam.OPEN]
        sets.append(("LoCoMo", locomo.load_all(), None))
    except DataMissingError as error:
        print(error, file=sys.stderr)
        return 1
    print("data       questions  evidence       key       any      gold  tokens     ms  p95 ms")
    for name, chats, wanted in sets:
        print(_line(name, asyncio.run(measure(chats, wanted, indexed=not options.plain))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
