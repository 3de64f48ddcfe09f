"""`RecallReader`: answers recall queries from a history. Pure.

Rows are returned as the history holds them, without redaction: the session's own model wrote them or has seen them,
and nobody else gets them. They are rendered and escaped as in a transcript, so that no content looks like a row header,
a fence or a summary's heading. They stand between two lines that no content can contain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from context_summarize.core.frames import NAME, summary_id
from context_summarize.core.history import History
from context_summarize.core.nodes import Node, with_children
from context_summarize.errors import RecallError
from context_summarize.recall.blocks import RECORD, WRAPPING, Blocks
from context_summarize.recall.by_words import answer_words, no_cursor
from context_summarize.recall.query import MIN_TOKENS, RecallAnswer, RecallQuery, WordsQuery
from context_summarize.recall.ranking import Ranking
from context_summarize.recall.rows import NumberedRows, ShownRow
from context_summarize.tokens.measure import Count
from context_summarize.transcript.escaping import after_cut

_RANGE = re.compile(r"(?i)\s*(?:messages?\s*)?#?(\d{1,9})(?:\s*(?:-|–|—|to|\.\.)\s*#?(\d{1,9}))?\s*")
_RANGE_CURSOR = re.compile(r"(\d{1,9})-(\d{1,9})@(\d{1,9})\+(\d{1,9})")


class RecallReader:
    """Answers queries about a history as it is now, without rows that come later.

    The constructor is cheap; call it on the event loop. `answer` may read the whole history for a query by words and
    may run in a thread.

    Args:
        nodes: the summaries that the view shows; they lead to the summaries that they were merged from.
        count: tokens of a text.
    """

    def __init__(self, history: History, nodes: Sequence[Node], count: Count) -> None:
        self._history = history
        self._nodes = tuple(nodes)
        self._rows = NumberedRows(history)
        self._blocks = Blocks(count)

    @property
    def total(self) -> int:
        """Number of rows that can be read: 1 to this."""
        return self._rows.total

    def answer(self, query: RecallQuery, limit: int, ranking: Ranking | None = None) -> RecallAnswer:
        """The requested rows, within `limit` tokens, and a cursor for the rest.

        Args:
            ranking: what an index knows of a query by words; without it, the whole history is searched.

        Raises:
            RecallError: there are no such rows, or no room for an answer.
        """
        if limit < MIN_TOKENS:
            raise RecallError("the request is nearly full, so there is no room for an answer now; continue without it")
        if query.messages is not None:
            return self._by_range(query.messages, limit)
        if query.summary is not None:
            first, last = self._span(query.summary.lower())
            return self._range(first, last, first, 0, limit)
        if (asked := WordsQuery.of(query)) is not None:
            return answer_words(self._rows, self._blocks, asked, ranking, limit)
        return self._by_cursor(query.cursor or "", limit)

    def _by_range(self, text: str, limit: int) -> RecallAnswer:
        match = _RANGE.fullmatch(text)
        if match is None:
            raise RecallError(f'{text[:40]!r} is not a range of messages; write one such as "13-58", or one number')
        first = int(match[1])
        last = int(match[2] or first)
        if 1 <= last < first and last <= self.total:
            raise RecallError(f'the range {first}-{last} is reversed; write the lower number first: "{last}-{first}"')
        self._check(first, last)
        return self._range(first, min(last, self.total), first, 0, limit)

    def _by_cursor(self, cursor: str, limit: int) -> RecallAnswer:
        if match := _RANGE_CURSOR.fullmatch(cursor):
            first, last, at, offset = map(int, match.groups())
            self._check(first, last)
            fits = first <= at <= last <= self.total and (not offset or offset < len(self._rows.row(at).row.text))
        else:
            fits = False
        if not fits:
            raise no_cursor(cursor)
        return self._range(first, last, at, offset, limit)

    def _check(self, first: int, last: int) -> None:
        if not 1 <= first <= last or first > self.total:
            have = f"it has {self.total}, numbered from 1" if self.total else "it has none yet"
            raise RecallError(f"the conversation has no messages {first} to {last}; {have}")

    def _span(self, given: str) -> tuple[int, int]:
        """First and last number of the rows that the summary with this id replaces."""
        found = {node.key: node for node in with_children(self._nodes) if node.key.startswith(given)}
        if re.fullmatch(r"[0-9a-f]{8,64}", given) and len(found) == 1:
            node = next(iter(found.values()))
            return self._history.message_range(node.first_group, node.end_group)
        spans = [(node, *self._history.message_range(node.first_group, node.end_group)) for node in self._nodes[:12]]
        listed = ", ".join(f"{summary_id(node.key)} (messages {first} to {last})" for node, first, last in spans)
        raise RecallError(f"no summary has the id {given[:40]!r}; shown now: {listed or 'none'}")

    def _range(self, first: int, last: int, at: int, offset: int, limit: int) -> RecallAnswer:
        """As many whole rows as fit; a row is cut only if it is too large for an answer of its own."""
        room = limit - WRAPPING
        blocks: list[str] = []
        number = at
        while number <= last:
            shown = self._rows.row(number)
            block = self._blocks.block(shown, after_cut(shown.row.text, offset) if offset else shown.row.text, since=at)
            size = self._blocks.size(block, room)
            if size > room:
                if not blocks:
                    block, offset = self._cut(shown, offset, room)
                    blocks.append(block)
                break
            blocks.append(block)
            room -= size
            number, offset = number + 1, 0
        shown_last = number if offset else number - 1
        title = f"Message {at}" if shown_last == at else f"Messages {at} to {shown_last}"
        cursor = f"{first}-{last}@{number}+{offset}" if number <= last else None
        more = "" if cursor is None else f'\n[Up to message {last} there is more: {NAME}(cursor="{cursor}")]'
        return self._blocks.answer(
            f"{title} of {self.total} of this conversation, {RECORD}",
            blocks,
            more,
            tuple(range(at, shown_last + 1)),
            cursor,
        )

    def _cut(self, shown: ShownRow, offset: int, room: int) -> tuple[str, int]:
        """As much of a row as fits, and the offset of the cut."""
        text = shown.row.text
        kept = self._blocks.fit(
            text[offset:], room - self._blocks.size(self._blocks.block(shown, "", since=0), room) - 50
        )
        line = text.rfind("\n", offset + kept * 3 // 4, offset + kept)
        end = line + 1 if line > offset else offset + kept
        said = after_cut(text[:end], offset) if offset else text[:end]
        note = f"[… cut here: {len(text) - end:,} of {len(text):,} characters of this message follow …]"
        return self._blocks.block(shown, f"{said}\n{note}", since=0), end
