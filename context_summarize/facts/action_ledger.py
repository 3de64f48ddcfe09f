"""What the agent has done, folded into a few lines: open work, tests, files, failures, searches without a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from context_summarize.facts.actions import Action
from context_summarize.facts.outcomes import is_test
from context_summarize.tokens.measure import Count

_FIRST_SHARE = 0.35
"""Share of the tokens that one kind of line may take before all other kinds have had their turn."""


@dataclass(slots=True)
class _File:
    """What was done to one file."""

    reads: int = 0
    edits: int = 0
    created: bool = False
    deleted: bool = False
    refused: bool = False
    """True while every change of it has failed."""
    last: int = 0


@dataclass(slots=True)
class _Command:
    """What became of one command."""

    runs: int = 0
    failures: int = 0
    outcome: str = ""
    failure: str = ""
    failing: bool = False
    last: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of one kind, newest first."""

    title: str
    items: tuple[str, ...]


@dataclass(slots=True)
class ActionLedger:
    """Takes actions in their order; `sections()` tells what they came to."""

    _files: dict[str, _File] = field(default_factory=dict)
    _commands: dict[str, _Command] = field(default_factory=dict)
    _searches: dict[str, int] = field(default_factory=dict)
    _changes: dict[tuple[str, str], int] = field(default_factory=dict)
    """(tool, what it was given) → message."""
    _open: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, action: Action) -> None:
        """Take in the next action."""
        if action.job:
            self._open[action.job] = (f"{action.tool} {action.what}".strip(), action.number)
        if action.verb == "ran":
            self._ran(action)
        elif action.verb == "searched":
            self._searches[action.what] = action.number
        elif action.verb == "changed":
            _newest(self._changes, (action.tool, action.what + (" failed" if action.failed else "")), action.number)
        elif action.verb != "delegated":
            self._touched(action)

    def close(self, job: str) -> None:
        """A job has come to its end."""
        self._open.pop(job, None)

    def _ran(self, action: Action) -> None:
        found = self._commands.setdefault(action.what, _Command())
        found.runs += 1
        found.failures += action.failed
        found.outcome, found.failing, found.last = action.outcome, action.failed, action.number
        if action.failed:
            found.failure = action.outcome

    def _touched(self, action: Action) -> None:
        found = self._files.setdefault(action.what, _File())
        found.last = action.number
        if action.verb == "read":
            found.reads += 1
            return
        if action.failed:
            found.refused = found.refused or not (found.edits or found.created)
            return
        found.refused = False
        if action.verb == "deleted":
            found.deleted = True
            return
        known = found.reads or found.edits or found.created
        found.created = found.created or (action.verb == "created" and (not known or found.deleted))
        found.edits += action.verb == "edited" or bool(known)
        found.deleted = False

    def sections(self, operations: Iterable[str] = ()) -> list[Section]:
        """What is told, the most telling kind first.

        Args:
            operations: what the host says is under way.
        """
        ran = sorted(self._commands.items(), key=lambda item: -item[1].last)
        files = sorted(self._files.items(), key=lambda item: -item[1].last)
        tests = [item for item in ran if is_test(item[0]) and item[1].outcome]
        failing = [item for item in ran if item[1].failures and item not in tests]
        failing.sort(key=lambda item: not item[1].failing)
        rest = [item for item in ran if not item[1].failures and item not in tests]
        still = sorted(self._open.items(), key=lambda item: -item[1][1])
        return [
            Section("Still open", (*operations, *(f"{what} ({job}, #{number})" for job, (what, number) in still))),
            Section("Tests, last result", tuple(_ran(*item) for item in tests)),
            Section("Edited", tuple(_file(*item) for item in files if item[1].edits and not item[1].deleted)),
            Section(
                "Created",
                tuple(_file(*item) for item in files if item[1].created and not (item[1].edits or item[1].deleted)),
            ),
            Section("Deleted", tuple(_file(*item) for item in files if item[1].deleted)),
            Section("Failed commands", tuple(_ran(*item) for item in failing)),
            Section("Edits that failed", tuple(_file(*item) for item in files if item[1].refused)),
            *(Section(tool, items) for tool, items in self._changed()),
            Section("Searches that found nothing", _numbered(self._searches)),
            Section("Commands", tuple(_ran(*item) for item in rest)),
            Section("Read", tuple(_file(*item) for item in files if _only_read(item[1]))),
        ]

    def _changed(self) -> list[tuple[str, tuple[str, ...]]]:
        """What each tool has changed, the tool that was used last first."""
        found: dict[str, list[str]] = {}
        for (tool, what), number in sorted(self._changes.items(), key=lambda item: -item[1]):
            found.setdefault(tool, []).append(f"{what} (#{number})".strip())
        return [(tool, tuple(items)) for tool, items in found.items()]


def format_sections(sections: Sequence[Section], room: int, count: Count) -> str:
    """The sections as lines, within `room` tokens; "" where nothing fits. What is left out is counted.

    Each kind has up to a third of the room first, then what is left goes to the kinds in their order.
    """
    chosen = [0] * len(sections)
    left = room - sum(count(f"{section.title}: (+999 more)\n") for section in sections if section.items)
    sizes = [[count(f"{item}; ") for item in section.items[: _most(room)]] for section in sections]
    for share in (int(_FIRST_SHARE * room), room):
        for at, items in enumerate(sizes):
            bound = share - sum(items[: chosen[at]])
            while chosen[at] < len(items) and items[chosen[at]] <= min(left, bound):
                bound -= items[chosen[at]]
                left -= items[chosen[at]]
                chosen[at] += 1
    lines = list(_lines(sections, chosen))
    while lines and count("\n".join(lines)) > room:
        lines.pop()
    return "\n".join(lines)


def _most(room: int) -> int:
    """Items of one kind that could fit: each takes four tokens at least."""
    return max(1, room // 4)


def _lines(sections: Sequence[Section], chosen: Sequence[int]) -> Iterator[str]:
    for section, most in zip(sections, chosen, strict=True):
        if most:
            more = len(section.items) - most
            yield f"{section.title}: {'; '.join(section.items[:most])}{f' (+{more} more)' if more else ''}"


def _only_read(file: _File) -> bool:
    return file.reads > 0 and not (file.edits or file.created or file.deleted or file.refused)


def _file(path: str, file: _File) -> str:
    times = f"{file.edits}×, " if file.edits > 1 and not file.deleted else ""
    return f"{path} ({times}#{file.last})"


def _ran(command: str, found: _Command) -> str:
    told = found.outcome
    if found.failures and not found.failing:
        told = f"{found.failure or 'failed'}, later {found.outcome or 'succeeded'}"
    elif found.failing and not told:
        told = "failed"
    times = f"{found.runs}×, " if found.runs > 1 else ""
    return f"`{command}`{f' → {told}' if told else ''} ({times}#{found.last})"


def _newest(into: dict[tuple[str, str], int], what: tuple[str, str], number: int) -> None:
    into.pop(what, None)
    into[what] = number


def _numbered(found: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{what} (#{number})" for what, number in sorted(found.items(), key=lambda item: -item[1]))
