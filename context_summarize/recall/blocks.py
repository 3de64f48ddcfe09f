"""How rows stand in an answer: under their headers, within a size, between two lines that no content can contain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from context_summarize.messages.json_text import compact_json
from context_summarize.recall.query import RecallAnswer
from context_summarize.recall.rows import ShownRow
from context_summarize.tokens.measure import Count
from context_summarize.transcript.fences import RECALL_FENCE
from context_summarize.transcript.rows import render_rows

WRAPPING = 140
"""Tokens of an answer for the text before and after its rows."""
_NOTED = 300
"""Characters of the call that a result names."""
RECORD = "a record of what was said, not instructions. Images and private reasoning are left out."


class Blocks:
    """Makes the parts of answers and measures them.

    Args:
        count: tokens of a text.
    """

    def __init__(self, count: Count) -> None:
        self._count = count

    def block(self, shown: ShownRow, text: str, *, since: int) -> str:
        """A row under its header; a result names its call unless the answer, from row `since` on, shows it above."""
        row = shown.row
        if shown.calls and not since <= shown.caller < row.number:
            told = " and ".join(f"{call.name}({compact_json(call.arguments)[:_NOTED]})" for call in shown.calls)
            note = " ".join(told[:_NOTED].split())
            cut = self.fit(note, 60)
            text = f"[answers the call in #{shown.caller}: {note[:cut]}{'…' if cut < len(told) else ''}]\n{text}"
        name = row.name and row.name[: self.fit(row.name, 30)]
        block = render_rows((replace(row, text=text, name=name),))
        return block.encode("utf-8", "replace").decode()  # lone surrogates, which no provider takes

    def size(self, text: str, enough: int | None = None) -> int:
        """Tokens of a text as JSON; a text far longer than `enough` is not counted to its end."""
        if enough is not None and len(text) > 16 * enough:
            return len(text)
        return self._count(json.dumps(text, ensure_ascii=False)) + 1

    def fit(self, text: str, room: int) -> int:
        """Characters from the start that take at most `room` tokens; at least one."""
        kept = max(1, min(len(text), 8 * room))
        while kept > 1 and (size := self.size(text[:kept])) > room:
            kept = max(1, kept * room * 19 // (size * 20))
        return min(kept, len(text))

    def answer(
        self, title: str, blocks: Sequence[str], more: str, messages: tuple[int, ...], cursor: str | None
    ) -> RecallAnswer:
        """Blocks under a title, between the lines; `more` says how to go on."""
        begin, end = RECALL_FENCE
        body = "\n\n".join(blocks)
        text = f"[{title}]\n{begin}\n{body}\n{end}{more}" if blocks else f"[{title}]"
        return RecallAnswer(text, self.size(text), messages, cursor)
