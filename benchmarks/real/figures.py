"""All figures of the report, made from cells: by contestant and data set, by chat, of recall, and the best of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.field.contestants import entries
from benchmarks.peers import text_of
from benchmarks.real.chats import Chat
from benchmarks.real.judge import Judged, judged, total
from benchmarks.real.play import RECALL, Cell, Piece, pieces
from benchmarks.real.results import Key
from context_summarize.tokens.counter import TokenCounter

OURS = "ours"
PEERS = ("peer", "tuned")


@dataclass(slots=True)
class Figures:
    """What the tables and pictures show."""

    by_chat: dict[str, dict[str, dict[str, Judged]]] = field(default_factory=dict)
    """Set, then chat, then contestant."""
    questions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By chat: questions with gold values, and with instructions."""
    recalled: dict[str, int] = field(default_factory=dict)
    """By chat: questions of which one answer of recall holds all gold values."""
    tokens: dict[str, int] = field(default_factory=dict)
    """By chat."""

    def sets(self) -> list[str]:
        """Data sets with results."""
        return [name for name, chats in self.by_chat.items() if any(chats.values())]

    def contestants(self, name: str) -> list[str]:
        """Contestants with results in a set, in the report's order."""
        return [one for one in entries() if any(one in found for found in self.by_chat[name].values())]

    def complete(self, name: str) -> list[str]:
        """Those of them that played every chat that has been played; only they are compared."""
        played = [found for found in self.by_chat[name].values() if found]
        return [one for one in self.contestants(name) if all(one in found for found in played)]

    def of(self, name: str, contestant: str) -> Judged:
        """A contestant over the chats of a set."""
        return total(found[contestant] for found in self.by_chat[name].values() if contestant in found)

    def asked(self, name: str) -> tuple[int, int]:
        """Questions with gold values and with instructions, of a set's played chats."""
        counts = [self.questions[chat] for chat, found in self.by_chat[name].items() if found]
        return sum(golds for golds, _ in counts), sum(rules for _, rules in counts)

    def recall(self, name: str) -> tuple[int, int] | None:
        """(questions answered, questions asked) by one recall; None where it was not run."""
        asked = [chat for chat, played in self.by_chat[name].items() if played and chat in self.recalled]
        return (sum(map(self.recalled.__getitem__, asked)), sum(self.questions[c][0] for c in asked)) if asked else None

    def best_peer(self, name: str, value: Callable[[Judged], float], *, least: bool = False) -> str | None:
        """The peer with the most (or least) of something, among those that played all chats and lost no turn."""
        peers = [one for one in self.complete(name) if entries()[one].kind in PEERS]
        sound = [one for one in peers if not self.of(name, one).lost_turns]
        sign = -1 if least else 1
        return max(sound or peers, key=lambda one: sign * value(self.of(name, one)), default=None)


def figures(sets: Mapping[str, Iterable[Chat]], cells: Mapping[Key, Cell]) -> Figures:
    """Judge all cells of these chats."""
    found = Figures()
    count = functools.lru_cache(maxsize=200_000)(TokenCounter().count)
    for name, chats in sets.items():
        found.by_chat[name] = {}
        for chat in chats:
            rows = chat.rows()
            messages = pieces(rows, frozenset(map(text_of, rows)), count)
            found.questions[chat.name] = (
                sum(bool(one.golds) for one in chat.questions),
                sum(one.instruction is not None for one in chat.questions),
            )
            found.tokens[chat.name] = sum(piece.size for piece in messages)
            of_chat = {key.contestant: cell for key, cell in cells.items() if (key.set, key.chat) == (name, chat.name)}
            if (asked := of_chat.pop(RECALL, None)) is not None:
                found.recalled[chat.name] = sum(asked.found)
            found.by_chat[name][chat.name] = _judged(chat, messages, of_chat)
    return found


def _judged(chat: Chat, messages: Sequence[Piece], cells: Mapping[str, Cell]) -> dict[str, Judged]:
    sizes = {name: sum(piece.size for piece in cell.view) for name, cell in cells.items()}
    # Who keeps no summaries can hold next to nothing just after its trigger; that is no size to compare at.
    summarised = [size for name, size in sizes.items() if size and entries()[name].kind != "plain"]
    room = min(summarised, default=0)
    return {name: judged(chat, messages, cell, room) for name, cell in cells.items()}
