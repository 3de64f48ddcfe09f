"""The rows of a report's data: messages, rows of views, and each request as what it changes of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from context_summarize.messages.json_text import compact_json
from context_summarize.messages.reading import analyse
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import render_parts
from context_summarize.replay.excerpts import common_limit, cut, ends
from context_summarize.replay.kept_values import all_nodes
from context_summarize.replay.numbering import message_numbers
from context_summarize.replay.result import CompactionLine, ReplayResult
from context_summarize.replay.views import ViewChange
from context_summarize.session.snapshot import Snapshot

Clean: TypeAlias = Callable[[str], str]
"""Removes secrets from a text."""
Part: TypeAlias = tuple[str, str, str]
"""(text, call or result; tool; text)."""

_MESSAGE_CHARS = 1_000_000
_ROW_CHARS = 500_000
"""Characters for all texts of a kind together."""
_MESSAGES = 6_000
_REQUESTS = 2_000
"""Entries that are shown. If there are more, the page leaves some out and says so."""


class ReportRows:
    """Messages and view rows of a replay, each text once.

    A row of a view that shows a message as it is refers to the message by its number.
    """

    def __init__(self, result: ReplayResult, snapshot: Snapshot, clean: Clean) -> None:
        self._result = result
        self._clean = clean
        self._numbers = message_numbers(result.rows)
        self.numbered = sum(number is not None for number in self._numbers)
        """How many messages there are: rows with a number."""
        self._messages = self._read_messages()
        self._leaves = [node for node in all_nodes(snapshot.nodes) if not node.children]
        self._shown = self._requests_shown()
        self._changes = result.views.between(set(self._shown))
        used = {at for change in self._changes.values() for at in change.added}
        used |= {at for _, change in result.views.unsent for at in change.added}
        self._ids = {at: place for place, at in enumerate(sorted(used))}
        """Position among the rows of the result → position in the page, which shows fewer of a long session."""

    def _read_messages(self) -> dict[int, list[Part]]:
        """The parts of each message, by its number."""
        names: dict[str, str] = {}
        read = [(number, self._parts(row, names)) for number, row in self._numbered()]
        return {number: parts for number, parts in read if number is not None}

    def _numbered(self) -> Iterator[tuple[int | None, JsonRow]]:
        return zip(self._numbers, self._result.rows, strict=True)

    def _parts(self, row: JsonRow, names: dict[str, str]) -> list[Part]:
        """The parts of a row, cleaned. `names` collects the calls seen so far."""
        return [(kind, self._clean(name), self._clean(text)) for kind, name, text in parts_of_row(row, names)]

    # --- messages ---------------------------------------------------------------------------------------------------

    def messages(self) -> list[list[Any]]:
        """[number, role, tokens, parts] of each message, or of the ends of each summary's where there are many."""
        by_number = {number: at for at, number in enumerate(self._numbers) if number is not None}
        kept = self._kept_numbers(len(by_number))
        lengths = [len(text) for number in kept for *_, text in self._messages[number]]
        limit = common_limit(lengths, _MESSAGE_CHARS)
        rows, sizes = self._result.rows, self._result.row_tokens
        return [
            [number, rows[at]["role"], sizes[at], _cut_parts(self._messages[number], limit)]
            for number in kept
            for at in (by_number[number],)
        ]

    def _kept_numbers(self, messages: int) -> list[int]:
        if messages <= _MESSAGES:
            return [*range(1, messages + 1)]
        spans = [(leaf.first, leaf.last) for leaf in self._leaves]
        spans.append((spans[-1][1] + 1 if spans else 1, messages))
        most = max(2, _MESSAGES // len(spans))
        return [number for first, last in spans for number in ends(range(first, last + 1), most)]

    def source_tokens(self) -> list[int]:
        """Tokens of the messages before each number: of 1 to n at position n."""
        pairs = zip(self._numbers, self._result.row_tokens, strict=True)
        return [*accumulate((size for number, size in pairs if number is not None), initial=0)]

    # --- rows of views ----------------------------------------------------------------------------------------------

    def rows(self) -> list[Any]:
        """[tokens, message] of a row that shows a message as it is; an object with its own parts for any other."""
        names: dict[str, str] = {}
        told: list[Any] = []
        own: list[tuple[int, list[Part]]] = []
        for place, at in enumerate(self._ids):
            shown = self._result.views.rows[at]
            parts = self._parts(shown.row, names)
            if shown.kind == "verbatim" and shown.message and parts == self._messages[shown.message]:
                told.append([shown.tokens, shown.message])
                continue
            own.append((place, parts))
            known = {
                "kind": shown.kind,
                "role": shown.row["role"],
                "tokens": shown.tokens,
                "message": shown.message,
                "whole": shown.whole_tokens,
                "span": shown.span,
                "key": shown.key,
            }
            told.append({name: value for name, value in known.items() if value is not None})
        limit = common_limit([len(text) for _, parts in own for *_, text in parts], _ROW_CHARS)
        for place, parts in own:
            told[place]["parts"] = _cut_parts(parts, limit)
        return told

    def last_texts(self) -> Iterator[str]:
        """The texts of the last request, uncut."""
        names: dict[str, str] = {}
        last = len(self._result.views.changes)
        for at in self._result.views.whole({last}).get(last, ()):
            yield from (text for *_, text in self._parts(self._result.views.rows[at].row, names))

    # --- requests ---------------------------------------------------------------------------------------------------

    def _requests_shown(self) -> list[int]:
        """The requests of the page; if there are too many, the smallest and the largest of each range."""
        sizes = {number: line.tokens for number, line in enumerate(self._result.request_lines, 1)}
        step = -(-len(sizes) // (_REQUESTS // 2))
        if step <= 2:
            return [*sizes]
        compacted = {line.row for line in self._result.boundaries}
        shown = {1, len(sizes)}
        shown |= {number for number, line in enumerate(self._result.request_lines, 1) if line.row in compacted}
        for first in range(1, len(sizes) + 1, step):
            run = sorted(range(first, min(first + step, len(sizes) + 1)), key=sizes.__getitem__)
            shown |= {run[0], run[-1]}
        return sorted(shown)

    def requests(self) -> list[list[Any]]:
        """[request, message that answers it, tokens, rows kept from the start of the one before, runs of new rows]."""
        lines = self._result.request_lines
        changes = ((number, self._changes.get(number, ViewChange(0, ()))) for number in self._shown)
        return [
            [number, lines[number - 1].message, lines[number - 1].tokens, change.same, self._runs(change.added)]
            for number, change in changes
        ]

    def compactions(self) -> list[dict[str, Any]]:
        """Each compaction, with the view that would have been sent without it."""
        lines = self._result.request_lines
        requests = {line.row: number for number, line in enumerate(lines, 1)}
        unsent = {number: change for number, change in self._result.views.unsent if number > 1}
        views = self._result.views.whole({at for number in unsent for at in (number - 1, number)})
        told = []
        for line in self._result.boundaries:
            number = requests.get(line.row, 0)
            told.append({"request": number, **self._compaction(line)})
            if number in unsent:
                before = (*views[number - 1][: unsent[number].same], *unsent[number].added)
                told[-1] |= self._effect(before, views[number])
        return told

    def _compaction(self, line: CompactionLine) -> dict[str, Any]:
        return {
            "message": line.message,
            "before_tokens": line.before_tokens,
            "after_tokens": line.after_tokens,
            "segments": line.segments,
            "merged": line.merged,
            "from_cache": line.from_cache,
            "digests": line.digests,
            "wait_ms": line.wait_ms,
            "reason": line.reason,
        }

    def _effect(self, before: Sequence[int], after: Sequence[int]) -> dict[str, Any]:
        """The messages that are newly summarised, and the view without the compaction."""
        earlier, last = self._last_summarised(before), self._last_summarised(after)
        told = {"summarised": [earlier + 1, last]} if last > earlier else {}
        return {**told, "before": self._runs([at for at in before if at in self._ids])}

    def _last_summarised(self, view: Iterable[int]) -> int:
        """The last message that a summary of a view stands for."""
        rows = (self._result.views.rows[at] for at in view)
        return max((row.span[1] for row in rows if row.kind == "summary" and row.span), default=0)

    def _runs(self, rows: Sequence[int]) -> list[int]:
        """Positions in the page as first, count, first, count …"""
        runs: list[int] = []
        for at in (self._ids[row] for row in rows):
            if runs and at == runs[-2] + runs[-1]:
                runs[-1] += 1
            else:
                runs += [at, 1]
        return runs


def parts_of_row(row: JsonRow, names: dict[str, str]) -> list[Part]:
    """The parts of a row: text, call or result. `names` maps the calls seen so far to tools, and grows."""
    analysed = analyse(row)
    parts = render_parts(analysed, {call_id: names.get(call_id, "") for call_id in analysed.result_ids}, ())
    texts = parts[: len(parts) - len(analysed.calls)]
    tool = names.get(analysed.result_ids[0], "") if analysed.role == "tool" else ""
    said = [("result", tool, text) if is_result else ("text", "", text) for is_result, text in texts]
    names.update({call.id: call.name for call in analysed.calls})
    return said + [("call", call.name, compact_json(call.arguments)) for call in analysed.calls]


def _cut_parts(parts: Sequence[Part], limit: int) -> list[list[str]]:
    return [[kind, name, cut(text, limit)] for kind, name, text in parts]
