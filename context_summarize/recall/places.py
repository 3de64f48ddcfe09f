"""Answers to words: the places of messages where most of the words meet, and what is nowhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from context_summarize.recall.answer import RECORD, Answers, RecallAnswer, named
from context_summarize.recall.index import Findings, Hit
from context_summarize.transcript.escaping import after_cut
from context_summarize.transcript.rendered import counted, may_be_call

_HITS, _BRIEF = 8, 12
"""Most places that are quoted, and most further messages with a line each."""
_LINES, _EXCERPT, _LINE = 15, 1_200, 160
"""Most lines and characters of a place, and most characters of a line that shows a message."""
_SEEN, _USER = 0.5, 1.5
"""Factors of the score: of a row that the view still shows, and of the user's words if a question asks for them."""
_ASKS_USER = re.compile(r"(?i)\b(?:users?|customers?|i|me|my|we|our)\b")
_LINE_NUMBER = re.compile(r"(?m)^ *\d+(?:→|:|-|\t)")


class Places:
    """Makes answers from what the index has found."""

    def __init__(self, answers: Answers, found: Findings) -> None:
        self._answers, self._rows, self._found = answers, answers.rows, found

    def best(self, question: str, summarised: int) -> RecallAnswer:
        """Returns the best place of each of the best messages; rows after `summarised`, if it is not 0, count less."""
        hits = self._without_echoes(bool(_ASKS_USER.search(question)), summarised)
        return self._quoted(
            sorted(hits, key=lambda hit: (2 * len(hit.words) < self._found.most, -hit.score, -hit.number))
        )

    def within(self) -> RecallAnswer:
        """Returns the best places of a range of messages, in their order."""
        return self._quoted(self._found.hits, in_order=True)

    def _without_echoes(self, asks_user: bool, summarised: int) -> list[Hit]:
        """Returns the hits with their final scores, without echoes.

        These are calls alone whose result has the same words, and short results whose call has them.
        """
        rows = {hit.number: self._rows.row(hit.number) for hit in self._found.hits}
        kept: dict[int, Hit] = {}
        for hit in self._found.hits:
            factor = _SEEN if hit.number > summarised > 0 else 1.0
            factor *= _USER if asks_user and rows[hit.number].by_user else 1.0
            kept[hit.number] = replace(hit, score=hit.score * factor)
        for hit in self._found.hits:
            result, caller = kept.get(hit.number), kept.get(rows[hit.number].caller)
            if result and caller and rows[hit.number].calls:
                text, call = rows[hit.number].row.text, rows[caller.number].row.text
                best = max(caller.score, result.score)
                if caller.words <= result.words and all(map(may_be_call, call.split("\n"))):
                    del kept[caller.number]
                    kept[hit.number] = replace(result, score=best)
                elif result.words <= caller.words and len(text) <= len(call):
                    del kept[hit.number]
                    kept[caller.number] = replace(caller, score=best)
        return list(kept.values())

    def _quoted(self, hits: Sequence[Hit], *, in_order: bool = False) -> RecallAnswer:
        """Returns an answer with the first of these places, then lines and numbers of others, as far as they fit."""
        found, room, answers = self._found, self._answers.room, self._answers
        if not hits:
            words = ", ".join(found.words)
            return answers.made(
                f"No message has any of these words: {words[: answers.fit(words, room)]}", [], "", (), None
            )
        missing = _missing(found)
        missing = missing[: answers.fit(missing, room // 3)]
        room -= answers.size(missing)
        is_weak = len(found.words) > 2 and 2 * found.most <= len(found.words)
        longest = max(200, min(_EXCERPT // 4 if is_weak else _EXCERPT, 3 * room // _HITS))
        places: list[tuple[int, int, str]] = []
        texts: set[str] = set()
        same: list[int] = []
        left = list(hits)
        while left and len(places) < _HITS and 2 * len(left[0].words) >= found.most:
            hit = left[0]
            text, block = self._place(hit, longest)
            if text in texts:
                same.append(left.pop(0).number)
                continue
            if (size := answers.size(block)) > room:
                if places:
                    break
                block = f"{block[: answers.fit(block, room - 10)]} …"
            texts.add(text)
            places.append((left.pop(0).number, hit.start, block))
            room -= size
        numbers = [number for number, *_ in places]
        left = [hit for hit in left if hit.number not in numbers]
        lines = self._lines(left, room)
        numbers += [hit.number for hit in left[: len(lines)]]
        others = dict.fromkeys(hit.number for hit in left[len(lines) :][:_BRIEF])
        more = f"\n[The same text: {named(*same[:_BRIEF])}]" if same else ""
        more += f"\n[Less well: {named(*others)}]" if others else ""
        blocks = [block for *_, block in (sorted(places) if in_order else places)]
        title = f"{counted(len(places), 'place')}{'' if in_order else ', best first'}; some of these words are in"
        title += f" {found.messages:,} of {counted(self._rows.total, 'message')}{missing}; {RECORD}"
        blocks += ["\n".join(lines)] if lines else []
        return answers.made(title, blocks, more, numbers, None)

    def _lines(self, hits: Sequence[Hit], room: int) -> list[str]:
        """Returns a line for each of these messages, as long as a quarter of an answer's room is left."""
        lines: list[str] = []
        for hit in hits[:_BRIEF]:
            row = self._rows.row(hit.number)
            said = " ".join(row.searched[hit.start : hit.start + _LINE].split())
            line = f"- {named(hit.number)} {row.row.role}: {said}"
            room -= self._answers.size(line)
            if room < self._answers.room // 4:
                break
            lines.append(line)
        return lines

    def _place(self, hit: Hit, longest: int) -> tuple[str, str]:
        """Returns the text of a place without line numbers and blanks, and the place as it is shown.

        It stands under its row's header, with its words and lines, and with the beginning of what followed.
        """
        shown = self._rows.row(hit.number)
        text = shown.searched
        start, end = _grown(text, hit, longest)
        part = after_cut(text[:end], start) if start else text[:end]
        plain = "".join(_LINE_NUMBER.sub("", part).split())
        part = f"{'… ' if start else ''}{part.rstrip()}{' …' if end < len(text.rstrip()) else ''}"
        notes = [f"has {', '.join(sorted(hit.words))}"] if len(self._found.words) > 1 else []
        if start or end < len(text):
            lines = text.count("\n", 0, start) + 1, text.count("\n", 0, end - 1) + 1, text.count("\n") + 1
            notes.append(f"lines {lines[0]}-{lines[1]} of {lines[2]}" + (f", from +{start}" if start else ""))
        note = f"[{'; '.join(notes)}]\n" if notes else ""
        return plain, f"{self._answers.block(shown, f'{note}{part}', since=hit.number)}{self._reply(hit.number)}"

    def _reply(self, number: int) -> str:
        """Returns the beginning of the row after one of the user or the agent, or what the user says there."""
        if self._rows.row(number).calls or number == self._rows.total:
            return ""
        reply = self._rows.row(number + 1)
        user = reply.by_user
        said = " ".join((user or reply.searched)[: 2 * _LINE].split())
        who = "the user: " if user else ""
        return f"\n→ {named(number + 1)} {who}{said[:_LINE]}{' …' if said[_LINE:] else ''}" if said else ""


def _missing(found: Findings) -> str:
    """Says which words occur nowhere, and how many of them meet in one message."""
    said = f". Nowhere: {', '.join(found.nowhere)}" if found.nowhere else ""
    if found.most < len(found.words):
        said += f". No message has more than {found.most} of the {len(found.words)} words"
    return said


def _grown(text: str, hit: Hit, longest: int) -> tuple[int, int]:
    """Returns a hit's place, grown to whole lines up to lines without letters before and behind it.

    Such lines are blank or hold a closing bracket alone, so a whole comment or function is shown where it has room.
    """
    start, end = hit.start, min(hit.end, hit.start + longest)
    lines = text.count("\n", start, end)
    most = max(_LINES, lines + _LINES // 3)
    while start and lines < _LINES:
        before = text.rfind("\n", max(0, start - 1 - longest), start - 1) + 1
        if (before == 0 and start > longest) or end - before > longest or not any(map(str.isalpha, text[before:start])):
            break
        start, lines = before, lines + 1
    while end < len(text) and lines < most:
        if text[end - 1] == "\n" and not any(map(str.isalpha, text[text.rfind("\n", 0, end - 1) + 1 : end])):
            break
        after = text.find("\n", end, end + longest) + 1 or len(text)
        if after - start > longest:  # a long line is cut, behind a word where it has one
            return start, max(end, text.rfind(" ", end, start + longest) + 1 or min(start + longest, len(text)))
        end, lines = after, lines + 1
    return start, end
