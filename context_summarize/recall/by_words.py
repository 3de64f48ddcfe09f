"""Answers to a search by words: passages that an index has ranked, or excerpts of the rows that hold the words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from context_summarize.core.frames import NAME
from context_summarize.errors import RecallError
from context_summarize.recall.blocks import RECORD, WRAPPING, Blocks
from context_summarize.recall.query import MIN_TOKENS, RecallAnswer, WordsQuery
from context_summarize.recall.ranking import Found, Ranking, telling
from context_summarize.recall.rows import NumberedRows
from context_summarize.recall.search import MAX_CHARS, MAX_WORDS, excerpt, query_words, words_in

_SEEN = re.compile(r"\S")
_MAX_HITS = 20
"""Rows in an answer without an index."""
_MAX_PASSAGES = 60
"""Rows in an answer with one."""
_MAX_PLAIN = 16
"""Words that are looked for without an index."""
_SHOWN_CHARS = 80
"""Characters of the question that a title repeats."""


@dataclass(frozen=True, slots=True)
class _Hits:
    """What was found, best first."""

    rows: Sequence[Found]
    """A row without spans is shown by an excerpt."""
    words: Sequence[str]
    """Words that an excerpt shows."""
    title: str
    """Says what was found; the words follow."""
    order: str
    """Says in which order."""


def answer_words(
    rows: NumberedRows, blocks: Blocks, asked: WordsQuery, ranking: Ranking | None, limit: int
) -> RecallAnswer:
    """Passages of the rows that answer the words, within `limit` tokens, and a cursor for the rest.

    Args:
        ranking: what an index found; without one, the whole history is searched for the words.

    Raises:
        RecallError: there are too many words, no room for an answer, or nothing where the cursor points.
    """
    words = query_words(asked.text)
    if not words or len(words) > MAX_WORDS or len(asked.text) > MAX_CHARS:
        raise RecallError(f"words must be 1 to {MAX_WORDS} words, {MAX_CHARS} characters at most; leave some out")
    until = rows.total if asked.until is None else min(asked.until, rows.total)
    hits = _ranked(rows, ranking, words, until) if ranking and ranking.rows else _plain(rows, words, until)
    if asked.skip and asked.skip >= len(hits.rows):
        raise no_cursor(f"{until}+{asked.skip}:{asked.text}")
    return _shown(rows, blocks, hits, WordsQuery(asked.text, until, asked.skip), limit)


def _shown(rows: NumberedRows, blocks: Blocks, hits: _Hits, asked: WordsQuery, limit: int) -> RecallAnswer:
    told = json.dumps(asked.text, ensure_ascii=False)
    short = told if len(told) <= _SHOWN_CHARS else json.dumps(f"{asked.text[:_SHOWN_CHARS]}…", ensure_ascii=False)
    room = limit - WRAPPING - blocks.size(short) - blocks.size(told)
    if room < MIN_TOKENS // 4:
        raise RecallError("there is no room for an answer to so many words; search for one or two")
    made: list[str] = []
    numbers: list[int] = []
    most = _MAX_PASSAGES if any(found.spans for found in hits.rows) else _MAX_HITS
    for found in hits.rows[asked.skip : asked.skip + most]:
        shown = rows.row(found.number)
        block = blocks.block(shown, _text(shown.searched, found, hits.words), since=found.number)
        size = blocks.size(block)
        if size > room:
            if made:
                break
            block = f"{block[: blocks.fit(block, room - 10)]} …"
        made.append(block)
        numbers.append(found.number)
        room -= size
    done, until = asked.skip + len(made), asked.until
    title = f"{hits.title} {short}"
    if made:
        title += f"; {hits.order}, {asked.skip + 1} to {done}: {RECORD}"
    cursor = f"{until}+{done}:{asked.text}" if done < len(hits.rows) else None
    more = _more(numbers[0], rows.total) if numbers else ""
    if cursor is not None:
        more += f"\n[{len(hits.rows) - done} more: {NAME}(cursor={json.dumps(cursor, ensure_ascii=False)})]"
    return blocks.answer(title, made, more, tuple(numbers), cursor)


def _more(number: int, total: int) -> str:
    around = f"{max(1, number - 2)}-{min(total, number + 2)}"
    return (
        f'\n[One of them whole: {NAME}(messages="{number}"); with what stands around it: {NAME}(messages="{around}")]'
    )


def _text(text: str, found: Found, words: Sequence[str]) -> str:
    if not found.spans:
        return excerpt(text, words)
    return "\n[…]\n".join(_stripped(text, start, end) for start, end in found.spans)


def _stripped(text: str, start: int, end: int) -> str:
    """A part of a text without the blanks around it, which would cost tokens."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    end = start + len(part.strip())
    # The row without its last blanks would be a copy of megabytes for each passage.
    return f"{'… ' if start else ''}{text[start:end]}{' …' if _SEEN.search(text, end) else ''}"


def _ranked(rows: NumberedRows, ranking: Ranking, words: Sequence[str], until: int) -> _Hits:
    """What the index found; before it rows with words that it does not know, after it rows that it lacks yet."""
    spans = {found.number: found for found in ranking.rows}
    first = _numbers(rows, ranking.unknown, 1, until) if ranking.unknown else []
    last = _numbers(rows, telling(words)[:_MAX_PLAIN], rows.closed_rows + 1, until)
    order = dict.fromkeys([*first, *spans, *last])
    plain = frozenset(first)
    title = f"Passages of {len(order)} of {until} messages of this conversation match, or stand beside a match of,"
    found = [Found(number, ()) if number in plain else spans.get(number, Found(number, ())) for number in order]
    return _Hits(found, (*ranking.unknown, *words), title, "best first")


def _plain(rows: NumberedRows, words: Sequence[str], until: int) -> _Hits:
    """Rows with any of the words, those with most of them first; whole words count first, then newer rows."""
    if len(words) > _MAX_PLAIN:
        words = telling(words)[:_MAX_PLAIN]
    numbers = _numbers(rows, words, 1, until)
    title = f"{len(numbers)} of {until} messages of this conversation hold at least one of the words"
    found = [Found(number, ()) for number in numbers]
    return _Hits(found, words, title, "those with most of them, whole words before parts, newest first")


def _numbers(rows: NumberedRows, words: Sequence[str], first: int, until: int) -> list[int]:
    """Numbers of the rows from `first` that hold any of the words, best first."""
    found: list[tuple[int, int, int]] = []
    for number, text in rows.texts(first, until):
        matched, whole = words_in(text, words)
        if matched:
            found.append((matched, whole, number))
    return [number for _, _, number in sorted(found, reverse=True)]


def no_cursor(cursor: str) -> RecallError:
    """The error for a cursor that no answer gave."""
    return RecallError(f"no answer gave the cursor {cursor[:60]!r}; copy it exactly, or ask again without a cursor")
