"""The actions of a history, group by group, and the row that tells them; it grows at its end only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from context_summarize.background import Steps, finished
from context_summarize.config import ToolKind
from context_summarize.core.frames import actions_row
from context_summarize.core.groups import Group, answered_calls
from context_summarize.core.history import History
from context_summarize.core.view_state import ShownActions
from context_summarize.facts.action_ledger import ActionLedger, format_sections
from context_summarize.facts.actions import Action, ActionReader, Answered
from context_summarize.facts.outcomes import is_running
from context_summarize.messages.reading import blocks_of, is_result, result_block_id
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import content_text, result_value
from context_summarize.redaction.redactor import Redact
from context_summarize.tokens.measure import Count, measure

_ITEM_TOKENS = 24
"""Estimate of what one action takes, until its line is written."""
_FRAME_TOKENS = 50
"""Estimate of what the row holds beside its lines."""


class ActionLog:
    """What the closed groups of one history did.

    Args:
        tools: kinds by tool name that come before the known ones.
        redact: removes secrets; None = nothing is removed.
    """

    def __init__(self, history: History, tools: Mapping[str, ToolKind], redact: Redact | None, count: Count) -> None:
        self._history = history
        self._count = count
        self._reader = ActionReader(tools, redact)
        self._next_group = 0
        self._groups: list[int] = []
        """Rendered group of each action."""
        self._actions: list[Action | str] = []
        """Actions in their order; a text is the id of a job that has ended."""
        self._running: set[str] = set()
        self._shown: tuple[object, ShownActions | None] = ((), None)

    def advance(self) -> Steps[None]:
        """Take in the rendered groups that have closed since the last time."""
        while self._next_group < len(self._history.rendered):
            group = self._history.rendered_group(self._next_group)
            if self._history.rows[group.start].calls:
                self._take(group, self._history.message_range(self._next_group, self._next_group + 1)[0])
            self._next_group += 1
            yield

    def _take(self, group: Group, number: int) -> None:
        for answered in _answered(self._history, group):
            if self._running and answered.result is not None:
                self._end_jobs(answered)
            for action in self._reader.read(answered, number):
                self._append(action)
                if action.job:
                    self._running.add(action.job)

    def _append(self, item: Action | str) -> None:
        self._groups.append(self._next_group)
        self._actions.append(item)

    def _end_jobs(self, answered: Answered) -> None:
        """A later call that names a job, and whose result says of none that it runs, has seen its end."""
        given = answered.call.arguments
        named = {str(value) for value in given.values()} if isinstance(given, dict) else set()
        for job in sorted(self._running & named):
            if not is_running(answered.result or ""):
                self._running.discard(job)
                self._append(job)

    def reserve(self, frontier: int, room: int) -> int:
        """Tokens that the row takes at most when the rendered groups before `frontier` are summarised."""
        finished(self.advance())
        found = bisect_left(self._groups, frontier)
        return min(room, _FRAME_TOKENS + _ITEM_TOKENS * found) if found else 0

    def shown(self, frontier: int, room: int, role: str, operations: Sequence[str] = ()) -> ShownActions | None:
        """The row for the rendered groups before `frontier`, of at most `room` tokens; None where nothing is told."""
        finished(self.advance())
        asked = (frontier, room, role, tuple(operations))
        if self._shown[0] != asked:
            self._shown = (asked, self._make(frontier, room, role, operations))
        return self._shown[1]

    def _make(self, frontier: int, room: int, role: str, operations: Sequence[str]) -> ShownActions | None:
        ledger = ActionLedger()
        for item in self._actions[: bisect_left(self._groups, frontier)]:
            if isinstance(item, str):
                ledger.close(item)
            else:
                ledger.add(item)
        sections, lines_room = ledger.sections(operations), room - _FRAME_TOKENS
        while lines_room > 0:
            text = format_sections(sections, lines_room, self._count)
            shown = self.frame(text, frontier, role) if text else None
            if shown is None or shown.tokens <= room:
                return shown
            lines_room -= max(1, shown.tokens - room)
        return None

    def frame(self, text: str, frontier: int, role: str) -> ShownActions:
        """The row of these lines, which tell of the rendered groups before `frontier`."""
        row = actions_row(self._history, text, frontier, role)
        return ShownActions(text, row, measure(row, self._count))


def _answered(history: History, group: Group) -> Iterator[Answered]:
    """The calls of a group, each with its result."""
    rows = history.rows
    told = {
        id(call): _result(rows[index].raw, call.id)
        for index, calls in answered_calls(rows, group).items()
        for call in calls
    }
    for call in rows[group.start].calls:
        text, failed = told.get(id(call), (None, False))
        yield Answered(call, text, failed)


def _result(raw: JsonRow, call_id: str) -> tuple[str, bool]:
    """(text of a call's result, whether the host marks it as an error)."""
    if raw["role"] == "tool":
        return content_text(raw.get("content")), raw.get("is_error") is True
    for block in blocks_of(raw):
        if is_result(block) and result_block_id(block) == call_id:
            return content_text(result_value(block)), block.get("is_error") is True
    return "", False
