"""The sessions that need nothing but the clone: the recorded desk with planted facts."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tokens import Row
from benchmarks.words import significant_words

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "examples" / "airline-desk.jsonl"
FACT = re.compile(r"FACT-\d{4}-[0-9A-F]{4}|watchword [a-z]{3,9}-[a-z]{3,9}(?![a-z])")
"""A planted fact: an identifier, which code can tell from prose, or plain words, which it cannot."""
_FIRST = """
amber basil birch brass brook cedar chalk cider cloud cobalt copper coral cotton crystal dune ebony ember fern
flint forest frost garden ginger granite hazel heather honey indigo ivory jade juniper lemon linen maple marble
meadow misty mossy nutmeg oaken olive onyx opal orchid pearl pepper pine quartz raven river rose saffron sandy
silver slate stone sunny timber tulip velvet violet walnut willow winter
"""
_SECOND = """
anchor badger beacon beetle bison bottle bridge candle canoe castle comet condor crane dolphin dragon falcon
feather finch fiddle gecko goose harbor hammer heron island jackal kettle ladder lantern leopard lizard magpie
marten mirror monkey needle orbit otter panda parrot pebble pelican pigeon planet puffin rabbit rocket saddle
salmon spider sparrow squirrel stork temple thimble tiger turtle valley wagon walrus weasel window wizard zebra
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a session, with its gold answer."""

    text: str
    golds: tuple[str, ...]
    """Values of the answer (numbers, dates, names), as its sources show them; empty for other answers."""
    subject: str | None = None
    """The identifier that the question is about, if that alone must be near a gold value."""
    sources: tuple[int, ...] = ()
    """Indexes of the rows that hold the answer; empty where the data set names none."""

    @property
    def words(self) -> set[str]:
        """The words that must be near a gold value."""
        return significant_words(self.subject or self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation that is played to contestants."""

    name: str
    rows: tuple[Row, ...]
    budget: int = 40_000
    """Tokens that a request may hold."""
    facts: tuple[str, ...] = ()
    """Planted ones."""
    questions: tuple[Question, ...] = ()


def recorded(copies: int = 1, path: Path = RECORDING) -> list[Row]:
    """Returns a recording, joined `copies` times. Ids differ between copies; the system prompt comes once."""
    lines = path.read_text("utf-8").splitlines()
    joined = [json.loads(line if copy == 0 else _renamed(line, copy)) for copy in range(copies) for line in lines]
    return [row for at, row in enumerate(joined) if row["role"] != "system" or at < len(lines)]


_ID = re.compile(r"call_(?=\d)|\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{6}\b|(?<=[a-z]_)\d{3,7}\b")
_CHARS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _renamed(line: str, copy: int) -> str:
    """Returns a line with other ids of calls, reservations, users and cards, changed alike in the whole copy."""

    def turned(match: re.Match[str]) -> str:
        if match[0] == "call_":
            return f"call_{copy}_"
        return "".join(
            chars[(chars.index(char) + 3 * copy) % len(chars)] for char in match[0] for chars in _CHARS if char in chars
        )

    return _ID.sub(turned, line)


def plant(rows: Sequence[Row], facts: int, seed: int = 0) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Returns copies of the rows with facts in them, spread evenly over the session, roles and kinds, and the facts.

    The seed chooses the blank of a row's text where a fact goes. Rows without text get none.
    """
    chance = random.Random(seed)
    planted = [dict(row) for row in rows]
    by_role = {role: _with_text(rows, role) for role in ("user", "assistant", "tool")}
    by_role = {role: found for role, found in by_role.items() if found}
    watchwords = chance.sample([f"{a}-{b}" for a in _FIRST.split() for b in _SECOND.split()], (facts + 1) // 2)
    made = []
    for number in range(facts):
        found = list(by_role.values())[number % len(by_role)]
        # Each fact has its own part of the session; chance chooses the row in it.
        at = found[min(len(found) - 1, int((number + chance.random()) / facts * len(found)))]
        is_code = number // len(by_role) % 2 == 0
        value = f"FACT-{number:04d}-{chance.randrange(65536):04X}" if is_code else f"watchword {watchwords.pop()}"
        planted[at]["content"] = _noted(planted[at]["content"], value, chance)
        made.append(value)
    return tuple(planted), tuple(made)


def _with_text(rows: Sequence[Row], role: str) -> list[int]:
    return [
        at for at, row in enumerate(rows) if row["role"] == role and isinstance(row["content"], str) and row["content"]
    ]


def _noted(text: str, value: str, chance: random.Random) -> str:
    """Returns the text with a note at one of its blanks, but not inside an earlier fact."""
    inside = {at for match in FACT.finditer(text) for at in range(match.start(), match.end())}
    at = chance.choice([*(match.start() for match in re.finditer(" ", text) if match.start() not in inside), len(text)])
    return f"{text[:at]} (note: {value}){text[at:]}"


def field(budget: int, seed: int = 0) -> Session:
    """Returns the desk with planted facts: 0.48 million tokens and 400 facts, a quarter of both for small windows."""
    copies = 4 if budget >= 40_000 else 1
    rows, facts = plant(recorded(copies), 100 * copies, seed)
    return Session(name=f"field-{budget // 1000}k-{seed}", rows=rows, facts=facts, budget=budget)


def called(number: int, name: str, arguments: dict[str, Any], text: str) -> list[Row]:
    """Returns the rows of a call and its result."""
    return [
        assistant("", [(f"call_{number:05d}", name, arguments)]),
        {"role": "tool", "tool_call_id": f"call_{number:05d}", "name": name, "content": text},
    ]


def assistant(text: str, calls: Sequence[tuple[str, str, Any]]) -> Row:
    """Returns an assistant's row as Amplifier's loops store it: calls (id, name, arguments) are blocks too."""
    if not calls:
        return {"role": "assistant", "content": text}
    blocks = [{"type": "tool_call", "id": i, "name": name, "input": given} for i, name, given in calls]
    kept = [{"id": i, "tool": name, "arguments": given} for i, name, given in calls]
    content = [*([{"type": "text", "text": text}] if text else []), *blocks]
    return {"role": "assistant", "content": content, "tool_calls": kept}
