"""What the last views of a chat hold, as they are and at equal size, summed over the chats of a set. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from benchmarks.real.chats import Chat
from benchmarks.real.play import HEAD, SUMMARY, VERBATIM, Cell, Piece
from benchmarks.real.scoring import instruction_kept, score, telling_words


@dataclass(frozen=True, slots=True)
class Held:
    """Counts of what a text holds."""

    gold: int = 0
    """Questions of which all gold values stand in the text."""
    near: int = 0
    """Questions of which one gold value stands near the question's words."""
    instructions: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(self.gold + other.gold, self.near + other.near, self.instructions + other.instructions)


@dataclass(frozen=True, slots=True)
class Judged:
    """One contestant in one chat, or summed over chats."""

    chats: int = 1
    view: Held = field(default_factory=Held)
    """The last view."""
    tail: Held = field(default_factory=Held)
    """The newest messages of the size of the last view."""
    cut: Held = field(default_factory=Held)
    """The last view cut to the size of the smallest one."""
    size: int = 0
    """Tokens of the last views."""
    tokens: int = 0
    """Of the chats."""
    price: float = 0.0
    waited: float = 0.0
    """Sum over the chats of the share of the model's own latency."""
    broken_pairs: int = 0
    over_budget: int = 0
    lost_turns: int = 0
    requests: int = 0

    def __add__(self, other: Judged) -> Judged:
        return Judged(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def total(found: Iterable[Judged]) -> Judged:
    """The sum."""
    return sum(found, Judged(chats=0))


def held(chat: Chat, text: str) -> Held:
    """What a text holds of a chat's questions."""
    scores = [score(text, question.words, question.golds) for question in chat.questions if question.golds]
    rules = [telling_words(question.instruction) for question in chat.questions if question.instruction]
    return Held(
        sum(one.in_view for one in scores),
        sum(one.near for one in scores),
        sum(instruction_kept(text, rule) for rule in rules),
    )


def judged(chat: Chat, messages: Sequence[Piece], cell: Cell, room: int) -> Judged:
    """A contestant's cell.

    Args:
        messages: the chat's own messages.
        room: tokens of the smallest view of the chat.

    Raises:
        ValueError: the cell is not a contestant's.
    """
    result = cell.result
    if result is None:
        raise ValueError("a cell of recall has no view to judge")
    size = sum(piece.size for piece in cell.view)
    return Judged(
        view=held(chat, _text(cell.view)),
        tail=held(chat, _text(within(messages, size))),
        cut=held(chat, _text(within(cell.view, room))),
        size=size,
        tokens=result.tokens,
        price=result.price,
        waited=result.waited,
        broken_pairs=result.broken_pairs,
        over_budget=result.over_budget,
        lost_turns=result.lost_turns,
        requests=result.requests,
    )


def within(view: Sequence[Piece], room: int) -> list[Piece]:
    """A view cut to `room` tokens: its oldest messages go first, then its oldest summaries, the system prompt last.

    Of the row where the cut falls the end stays.
    """
    left = dict(enumerate(view))
    over = sum(piece.size for piece in view) - room
    for kind in (VERBATIM, SUMMARY, HEAD):
        for at, piece in enumerate(view):
            if over > 0 and piece.kind == kind:
                stays = max(0, piece.size - over)
                over -= piece.size - stays
                if stays:
                    left[at] = Piece(piece.text[-(len(piece.text) * stays // piece.size) :], stays, kind)
                else:
                    del left[at]
    return list(left.values())


def _text(view: Sequence[Piece]) -> str:
    return "\n".join(piece.text for piece in view)
