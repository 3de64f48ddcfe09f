"""All that notes are written from: it reads the rendered rows of a history once, and writes the text of the row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from context_summarize.config import ToolKind
from context_summarize.notes.actions import Actions
from context_summarize.notes.choosing import chosen, ranked, written
from context_summarize.notes.instructions import Instruction, Place, placed, signalled, verified
from context_summarize.notes.requests import Requests
from context_summarize.notes.values import Candidates
from context_summarize.tokens.measure import Count
from context_summarize.transcript.rows import RenderedRow

_INSTRUCTIONS = "Instructions of the user that still apply, in the user's words:"
_VALUES = "Exact values (#7 is message 7):\n"
_SHARES = {"requests": 0.15, "actions": 0.3}
"""Shares of the room that these parts may take; what they leave goes to the values."""
_TRIES = 4


class Notes:
    """What is known of the summarised part of one history.

    Args:
        tools: kinds by tool name that come before what is read from the arguments.
        signs: words of the prompt set that make a user's sentence an instruction.
    """

    def __init__(self, count: Count, tools: Mapping[str, ToolKind], signs: Sequence[str]) -> None:
        self.count = count
        self._tools, self._signs = tools, signs
        self.values = Candidates()
        self._actions = Actions(tools)
        self._requests = Requests()
        self._instructions: dict[tuple[int, int], Instruction] = {}
        self._restored: dict[int, list[Place]] = {}
        """Places of a record's instructions by row, until these rows are read."""

    def fresh(self) -> Notes:
        """Others that have read nothing yet."""
        return Notes(self.count, self._tools, self._signs)

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the instructions stand, in their order."""
        waiting = (place for places in self._restored.values() for place in places)
        known = ((one.row, one.start, one.end) for one in self._instructions.values())
        return tuple(sorted({*waiting, *known}))

    def restore(self, places: Sequence[Place]) -> None:
        """Take in where instructions stand, before the rows are read."""
        for place in places:
            self._restored.setdefault(place[0], []).append(place)

    def read(self, rows: Sequence[RenderedRow]) -> None:
        """Take in the rows of the next group, numbered as frames count."""
        self._actions.read(rows)
        for row in rows:
            self.values.read(row)
            self._requests.read(row)
            if row.role == "user":
                self._keep(signalled(self._signs, row.number, row.said))
                self._keep(placed(self._restored.pop(row.number, []), row.said))

    def verify(self, lines: Sequence[str], rows: Sequence[tuple[int, str]]) -> None:
        """Take in the instructions that these lines quote, as far as the user wrote them.

        Args:
            rows: (number, own text) of the user's rows that are quoted.
        """
        self._keep(verified(lines, rows))

    def _keep(self, found: Iterable[Instruction]) -> None:
        for one in found:
            self._instructions.setdefault((one.row, one.start), one)

    def written(
        self, room: int, shown: str, most_instructions: int, operations: Sequence[str] = (), *, goes_on: bool = False
    ) -> str:
        """The text of the row, of at most `room` tokens; "" where nothing is told.

        Args:
            shown: text that the model gets anyway; what it holds is left out.
            most_instructions: tokens that the instructions may take.
            operations: what the host says is under way.
            goes_on: the user wrote again after what has been read.
        """
        instructions = self._written_instructions(min(room, most_instructions))
        room -= self.count(instructions)
        requests = self._lists(self._requests.lines(goes_on), int(room * _SHARES["requests"]), "\n")
        actions = self._lists(self._actions.lines(operations), int(room * _SHARES["actions"]), "; ")
        left = room - self.count(requests) - self.count(actions) - self.count(_VALUES)
        values = self._written_values(left, "\n".join((shown, instructions, requests, actions)))
        return "\n".join(part for part in (instructions, requests, actions, values) if part)

    def _written_instructions(self, room: int) -> str:
        """The newest and the oldest first where room is short; told in the order in which they were said."""
        kept = sorted(self._instructions.values(), key=lambda one: (one.row, one.start))
        told = {one.text for one in kept}
        whole = (one.text if one.lead in told else f"{one.lead} {one.text}".strip() for one in kept)
        lines = [f"- {text}" for text in dict.fromkeys(whole)]
        alternating = dict.fromkeys(line for pair in zip(reversed(lines), lines, strict=True) for line in pair)
        taken = set(self._taken(alternating, room))
        left_out = [f"({len(lines) - len(taken)} more are left out)"] if len(taken) < len(lines) else []
        return "\n".join([_INSTRUCTIONS, *(line for line in lines if line in taken), *left_out]) if taken else ""

    def _lists(self, lists: Iterable[tuple[str, list[str]]], room: int, between: str) -> str:
        """Each list behind its heading, as far as its even share of the room and what the others leave goes."""
        told = [(heading, items) for heading, items in lists if items]
        lines: list[str] = []
        for at, (heading, items) in enumerate(told):
            taken = list(self._taken(items, room // (len(told) - at) - self.count(heading)))
            if taken:
                lines.append(heading + between.join(taken))
                room -= self.count(lines[-1])
        return "\n".join(lines)

    def _written_values(self, room: int, shown: str) -> str:
        """The best values and sentences; what a line really takes is known once it is written, so it is tried again."""
        if room <= 0:
            return ""
        entries = ranked(self.values, shown, self.count)
        best, target = "", room
        for _ in range(_TRIES):
            text = written(chosen(entries, target), self.values.word_rows)
            size = self.count(text)
            if size <= room:
                best = max(best, text, key=len)
            if not text or 0.95 * room <= size <= room:
                break
            target = int(target * 0.98 * room / size)
        return f"{_VALUES}{best}" if best else ""

    def _taken(self, items: Iterable[str], room: int) -> Iterator[str]:
        """The items up to the first one that does not fit."""
        for item in items:
            room -= self.count(item) + 1
            if room < 0:
                return
            yield item
