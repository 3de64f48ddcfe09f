"""Answers to words: the places of messages where most of the words meet, and what is nowhere."""

from __future__ import annotations

import re

import regex

from context_summarize.recall.answer import RECORD, Answers, RecallAnswer
from context_summarize.recall.index import Findings, Hit
from context_summarize.transcript.escaping import after_cut
from context_summarize.transcript.marks import counted, mark

_QUOTED, _NAMED = 8, 20
"""Most places that are quoted, and most further ones with a line each."""
_PLACE, _LINE = 1_200, 160
"""Most characters of a place, and of a line that shows a message."""
_BESIDE, _SEEN, _USER = 0.4, 0.5, 1.5
"""A message's score gains this share of a neighbour's, because a question and its answer are neighbours. Factors of the
score: of a row that the view still shows, and of the user's words if a question asks for them."""
_ASKS_USER = re.compile(r"(?i)\b(?:users?|customers?|i|me|my|we|our)\b")
_GAP = regex.compile(r"\n[^\n\p{L}]*(?=\n)")
"""The end of a comment or function: a line without letters, which is blank or holds a closing bracket."""


class Places:
    """Makes answers from what the index has found; rows after `summarised`, if it is not 0, count less."""

    def __init__(self, answers: Answers, found: Findings, question: str, summarised: int) -> None:
        self._answers, self._rows, self._found, self._summarised = answers, answers.rows, found, summarised
        self._asks_user = _ASKS_USER.search(question) is not None
        self._own = {hit.number: hit.score for hit in found.hits}

    def _rank(self, hit: Hit) -> tuple[bool, float, int]:
        score = hit.score + _BESIDE * max(self._own.get(hit.number + at, 0.0) for at in (-1, 1))
        score *= _SEEN if hit.number > self._summarised > 0 else 1.0
        score *= _USER if self._asks_user and self._rows.row(hit.number).by_user else 1.0
        return self._has_few(hit), -score, -hit.number

    def _has_few(self, hit: Hit) -> bool:
        return 2 * len(hit.words) < self._found.most

    def quoted(self, *, in_order: bool = False) -> RecallAnswer:
        """Returns an answer with the best places, then a line of each of the others, as far as they fit.

        `in_order` puts the places of a range of messages into their order.
        """
        found, answers = self._found, self._answers
        if not found.hits:
            words = ", ".join(found.words)
            none = f"No message has any of these words: {words[: answers.fit(words, answers.room)]}"
            return answers.made(none, [], "", (), None)
        missing = _missing(found)
        missing = missing[: answers.fit(missing, answers.room // 3)]
        room = answers.room - answers.size(missing)
        longest = max(200, min(_PLACE, 3 * room // _QUOTED))
        blocks: list[tuple[int, int, str]] = []
        spans: dict[int, list[tuple[int, int]]] = {}
        quoted = 0
        for hit in sorted(found.hits, key=self._rank):
            others = spans.setdefault(hit.number, [])
            if any(first < hit.end and hit.start < last for first, last in others):
                continue
            start, end = _grown(self._rows.row(hit.number).searched, hit, longest)
            start = max([start, *(last for _, last in others if last <= hit.start)])
            end = min([end, *(first for first, _ in others if first > hit.start)])
            block = "" if quoted == _QUOTED or self._has_few(hit) else self._place(hit, start, end)
            if not blocks and answers.size(block) > room:
                block = f"{block[: answers.fit(block, room - 10)]} …"
            if block and answers.size(block) <= room:
                quoted += 1
            elif len(blocks) == _QUOTED + _NAMED or answers.size(block := self._line(hit)) > room:
                break
            else:
                start, end = hit.start, hit.end
            others.append((start, end))
            blocks.append((hit.number, hit.start, block))
            room -= answers.size(block)
        title = f"{counted(quoted, 'place')}{'' if in_order else ', best first'}; some of these words are in"
        title += f" {found.messages:,} of {counted(self._rows.total, 'message')}{missing}; {RECORD}"
        blocks = sorted(blocks) if in_order else blocks
        return answers.made(title, [block for *_, block in blocks], "", [number for number, *_ in blocks], None)

    def _line(self, hit: Hit) -> str:
        row = self._rows.row(hit.number)
        said = " ".join(row.searched[hit.start : hit.start + _LINE].split())
        return f"- {mark(hit.number)} {row.row.role}: {said}".encode("utf-8", "replace").decode()

    def _place(self, hit: Hit, start: int, end: int) -> str:
        """Returns a place under its row's header, with its words and lines, and the beginning of what followed."""
        shown = self._rows.row(hit.number)
        text = shown.searched
        part = after_cut(text[:end], start) if start else text[:end]
        part = f"{'… ' if start else ''}{part.rstrip()}{' …' if end < len(text.rstrip()) else ''}"
        notes = [f"has {', '.join(sorted(hit.words))}"] if len(self._found.words) > 1 else []
        if start or end < len(text):
            lines = text.count("\n", 0, start) + 1, text.count("\n", 0, end - 1) + 1, text.count("\n") + 1
            notes.append(f"lines {lines[0]}-{lines[1]} of {lines[2]}" + (f", from +{start}" if start else ""))
        note = f"[{'; '.join(notes)}]\n" if notes else ""
        return f"{self._answers.block(shown, f'{note}{part}')}{self._reply(hit.number)}"

    def _reply(self, number: int) -> str:
        """Returns the beginning of the row after one of the user or the agent, or what the user says there."""
        if self._rows.row(number).row.role == "tool" or number == self._rows.total:
            return ""
        reply = self._rows.row(number + 1)
        user = reply.by_user
        said = " ".join((user or reply.searched)[: 2 * _LINE].split())
        block = f"\n→ {mark(number + 1)} {'the user: ' if user else ''}{said[:_LINE]}{' …' if said[_LINE:] else ''}"
        return block.encode("utf-8", "replace").decode() if said else ""


def _missing(found: Findings) -> str:
    """Says which words occur nowhere, and how many of them meet in one message."""
    said = f". Nowhere: {', '.join(found.nowhere)}" if found.nowhere else ""
    if found.most < len(found.words):
        said += f". No message has more than {found.most} of the {len(found.words)} words"
    return said


def _grown(text: str, hit: Hit, longest: int) -> tuple[int, int]:
    """Returns a hit's place, grown to the whole comment or function, or else to whole lines, where these have room.

    A last line that is not much too long is whole: what follows in it is often what was asked for.
    """
    end = min(hit.end, hit.start + longest)
    first = max(0, hit.start - (longest - (end - hit.start)) // 2)
    gaps = [gap.end() + 1 for gap in _GAP.finditer(text, first, hit.start)]
    if gaps or first == 0:
        start = gaps[-1] if gaps else 0
    else:
        start = text.find("\n", first, hit.start) + 1 or hit.start
    last = start + longest
    if gap := _GAP.search(text, end - 1, last):
        return start, gap.end() + 1
    if (most := last + longest // 2) >= len(text):
        return start, len(text)
    line_end = text.rfind("\n", end - 1, last) + 1 or text.find("\n", last, most) + 1
    return start, max(end, line_end or text.rfind(" ", end, last) + 1 or last)
