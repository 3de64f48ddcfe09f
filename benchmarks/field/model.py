"""The stand-in model: planted facts, and a summariser, the same for all, that keeps some of those that it is shown."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import itertools
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.peers import DoesNotFit, Row, text_of

# A contestant's adapter may replace `asyncio.sleep` while it runs.
_sleep = asyncio.sleep

CODE, PROSE = "code", "prose"
"""Kinds of facts: an identifier, which code can tell from prose, and plain words, which it cannot."""
FACT = re.compile(r"FACT-\d{4}-[0-9A-F]{4}|watchword [a-z]{3,9}-[a-z]{3,9}(?![a-z])")

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
class Fact:
    """One planted fact."""

    value: str
    kind: str
    role: str
    """Role of the row that it stands in."""
    row: int


def kind_of(value: str) -> str:
    """The kind of a fact by its value."""
    return CODE if value.startswith("FACT-") else PROSE


@functools.lru_cache(maxsize=100_000)
def facts_in(text: str) -> frozenset[str]:
    """The facts that stand whole in a text."""
    return frozenset(FACT.findall(text))


def plant(rows: Sequence[Row], facts: int, seed: int) -> tuple[list[Row], list[Fact]]:
    """Copies of the rows with facts in them, spread evenly over the session and alike over roles and kinds.

    Each stands at a blank of its row's text, chosen by the seed; rows without text hold none.

    Raises:
        ValueError: the recording holds a text that reads like a fact.
    """
    if any(facts_in(text_of(row)) for row in rows):
        raise ValueError("the recording holds text that reads like a planted fact; change FACT in benchmarks/field")
    chance = random.Random(seed)
    planted = [dict(row) for row in rows]
    by_role = {
        role: [
            at
            for at, row in enumerate(rows)
            if row["role"] == role and isinstance(row["content"], str) and row["content"]
        ]
        for role in ("user", "assistant", "tool")
    }
    places = {role: found for role, found in by_role.items() if found}
    words = chance.sample([f"{a}-{b}" for a in _FIRST.split() for b in _SECOND.split()], (facts + 1) // 2)
    made = []
    for number in range(facts):
        role = list(places)[number % len(places)]
        # One spot a fact, moved by chance within its share of the session.
        found = places[role]
        at = found[min(len(found) - 1, int((number + chance.random()) / facts * len(found)))]
        code = number // len(places) % 2 == 0
        value = f"FACT-{number:04d}-{chance.randrange(65536):04X}" if code else f"watchword {words.pop()}"
        planted[at]["content"] = _with(planted[at]["content"], value, chance)
        made.append(Fact(value, kind_of(value), role, at))
    return planted, made


def _with(text: str, value: str, chance: random.Random) -> str:
    """The text with a note at one of its blanks, but not within a fact that stands there already."""
    inside = {at for match in FACT.finditer(text) for at in range(match.start(), match.end())}
    at = chance.choice([*(match.start() for match in re.finditer(" ", text) if match.start() not in inside), len(text)])
    return f"{text[:at]} (note: {value}){text[at:]}"


# --- the model ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What the stand-in is like."""

    keep: float = 0.95
    """Chance that a fact which it is shown is in its answer."""
    share: float = 1 / 6
    """Length of its answer as a share of what it is shown, where nothing shorter is asked for."""
    max_output: int = 4_000
    """Tokens of its longest answer, unless less is asked for."""
    window: int = 44_000
    """Tokens of input and answer together."""
    start_seconds: float = 1.0
    read_seconds: float = 0.0001
    """A token of input."""
    write_seconds: float = 0.02
    """A token of output."""

    def seconds(self, read: int, wrote: int) -> float:
        """Latency of one answer."""
        return self.start_seconds + self.read_seconds * read + self.write_seconds * wrote


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the stand-in."""

    read: int
    """Tokens."""
    wrote: int
    refused: bool = False


_FILLER = (
    "The matter was looked into and settled as agreed.",
    "Details were confirmed before anything was changed.",
    "The person was content and moved on to the next subject.",
    "What was found was passed on in plain words.",
    "Nothing else was left open at that point.",
)
_WORDS = re.compile(r"[Uu]se at most (\d+) words|[Tt]arget ~?(\d+) tokens")


@dataclass(slots=True)
class StandIn:
    """One model for all contestants: what it keeps follows from its seed, the fact and what it is shown."""

    count: Callable[[str], int]
    traits: Traits = field(default_factory=Traits)
    seed: int = 0
    calls: list[Call] = field(default_factory=list)
    cpu: float = 0.0
    """Seconds of CPU that the stand-in itself has used."""

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """Its answer, after its latency.

        Raises:
            DoesNotFit: input and answer are longer than its window.
        """
        text, seconds = self._make(shown, instructions, max_output)
        await _sleep(seconds)
        return text

    async def ask_plainly(self, shown: str, max_output: int | None) -> str:
        """The same without instructions."""
        return await self.ask(shown, "", max_output)

    def _make(self, shown: str, instructions: str, max_output: int | None) -> tuple[str, float]:
        started = time.process_time()
        try:
            return self._written(shown, instructions, max_output)
        finally:
            self.cpu += time.process_time() - started

    def _written(self, shown: str, instructions: str, max_output: int | None) -> tuple[str, float]:
        traits = self.traits
        length = self.count(shown)
        read = length + self.count(instructions)
        limit = min(traits.max_output, max_output or traits.max_output)
        if read + min(limit, int(read * traits.share)) > traits.window:
            self.calls.append(Call(read, 0, refused=True))
            raise DoesNotFit(f"prompt is too long: {read} tokens > {traits.window} maximum context length")
        asked = _asked(instructions or shown)
        text = self._text(shown, int(min(limit, length * traits.share if asked is None else min(asked, length / 2))))
        wrote = self.count(text)
        self.calls.append(Call(read, wrote))
        return text, traits.seconds(read, wrote)

    def _text(self, shown: str, room: int) -> str:
        """Facts spread through filler, within `room` tokens; facts that do not fit are lost."""
        mark = hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()
        found = list(dict.fromkeys(FACT.findall(shown)))
        chances = {value: self._chance(mark, value) for value in found}
        kept: set[str] = set()
        for value in sorted(found, key=lambda value: chances[value]):
            cost = self.count(f" {value}.")
            if chances[value] >= self.traits.keep or cost > room:
                break
            kept.add(value)
            room -= cost
        filler = []
        for sentence in itertools.cycle(_FILLER):
            room -= self.count(f" {sentence}")
            if room < 0:
                break
            filler.append(sentence)
        facts = [f"{value}." for value in found if value in kept]
        return " ".join(_mixed(facts, filler)) or _FILLER[-1]

    def _chance(self, mark: str, value: str) -> float:
        digest = hashlib.sha256(f"{self.seed} {mark} {value}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


def _mixed(some: Sequence[str], others: Sequence[str]) -> list[str]:
    """Both, each in its order, spread evenly."""
    placed = [((at + 0.5) / len(some), text) for at, text in enumerate(some)]
    placed += [((at + 0.5) / len(others), text) for at, text in enumerate(others)]
    return [text for _, text in sorted(placed, key=lambda pair: pair[0])]


def _asked(prompt: str) -> float | None:
    """Tokens that the prompt asks for, if it states a length; a word is four thirds of one."""
    found = _WORDS.search(prompt[:4_000]) or _WORDS.search(prompt[-4_000:])
    if found is None:
        return None
    return int(found[1]) * 4 / 3 if found[1] else int(found[2])
