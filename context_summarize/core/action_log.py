"""The actions of a history, group by group, and the row that tells them; it grows at its end only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_summarize.background import Steps, finished
from context_summarize.config import ToolKind
from context_summarize.core.frames import actions_row
from context_summarize.core.groups import Group, answered_calls
from context_summarize.core.history import History
from context_summarize.core.view_state import ShownActions
from context_summarize.facts.action_ledger import ActionLedger, format_sections
from context_summarize.facts.actions import Action, ActionReader, Answered
from context_summarize.facts.outcomes import is_running
from context_summarize.messages.reading import blocks_of, id_of, is_result, result_block_id
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
        self._calls: Iterator[Answered] | None = None
        """What is left of the calls of that group; None before the first."""
        self._groups: list[int] = []
        """Rendered group of each action."""
        self._actions: list[Action | str] = []
        """Actions in their order; a text is the id of a job that has ended."""
        self._running: set[str] = set()
        self._shown: tuple[object, ShownActions | None] = ((), None)

    def advance(self) -> Steps[None]:
        """Take in the rendered groups that have closed since the last time, a call a step.

        Where somebody else has taken in calls meanwhile, the next one follows.
        """
        while self._next_group < len(self._history.rendered):
            if self._calls is None:
                self._calls = _answered(self._history, self._history.rendered_group(self._next_group))
            answered = next(self._calls, None)
            if answered is None:
                self._next_group, self._calls = self._next_group + 1, None
            else:
                self._take(answered, self._history.message_range(self._next_group, self._next_group + 1)[0])
            yield

    def _take(self, answered: Answered, number: int) -> None:
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
    if not rows[group.start].calls:
        return
    told: dict[int, tuple[Mapping[str, Any], Any]] = {}
    for index, calls in answered_calls(rows, group).items():
        results = _results(rows[index].raw)
        told |= {id(call): results.get(call.id, ({}, "")) for call in calls}
    for call in rows[group.start].calls:
        found = told.get(id(call))
        if found is None:
            yield Answered(call, None)
        else:
            yield Answered(call, content_text(found[1]), found[0].get("is_error") is True)


def _results(raw: JsonRow) -> dict[str, tuple[Mapping[str, Any], Any]]:
    """Id → (row or block that may be marked as an error, value) of each result of a row."""
    if raw["role"] == "tool":
        return {id_of(raw.get("tool_call_id")): (raw, raw.get("content"))}
    found: dict[str, tuple[Mapping[str, Any], Any]] = {}
    for block in blocks_of(raw):
        if is_result(block):
            found.setdefault(result_block_id(block), (block, result_value(block)))
    return found
