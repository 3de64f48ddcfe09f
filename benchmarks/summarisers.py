"""Stand-ins for a model that writes summaries: code with a model's latency, the same for all contestants."""

from __future__ import annotations

import hashlib
import itertools
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.clock import LoopClock
from benchmarks.sessions import FACT
from benchmarks.tokens import Count
from benchmarks.words import significant_words, words

MAX_OUTPUT = 4_000
"""Tokens of the longest answer. A window is so much larger than the budget of a request."""
_SHARE = 1 / 6
"""Length of an answer as a share of the input, if the prompt asks for no length."""
_ASKED = re.compile(r"[Uu]se at most (\d+) words|[Tt]arget ~?(\d+) tokens")
_SPACES = re.compile(r"[ \t]+")


class DoesNotFit(Exception):
    """The summariser's window is too small for the input. Adapters raise their framework's own error, if it has one."""


class SummariserDown(ConnectionError):
    """The summariser's service is down."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the summariser."""

    read: int
    """Tokens."""
    wrote: int
    refused: bool = False


def seconds_of(read: int, wrote: int) -> float:
    """Returns the latency of a model's answer: one second, and the time for reading and writing."""
    return 1.0 + 0.0001 * read + 0.02 * wrote


class Summariser:
    """One summariser for all contestants. Subclasses say what it writes.

    Args:
        count: counts the tokens of a text.
        window: tokens of input and answer together.
    """

    def __init__(self, count: Count, window: int) -> None:
        self.count, self.window = count, window
        self.calls: list[Call] = []
        self.cpu = 0.0
        """Seconds of CPU that the stand-in itself has used."""

    async def ask(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """Returns the answer after its latency.

        Raises:
            DoesNotFit: input and answer are longer than the window.
        """
        text, seconds = self._answered(shown, instructions, max_output)
        await LoopClock().sleep(seconds)
        return text

    def ask_blocking(self, shown: str, instructions: str = "", max_output: int | None = None) -> str:
        """Returns the answer to a contestant that cannot await. Virtual time passes, and nothing else runs."""
        text, seconds = self._answered(shown, instructions, max_output)
        LoopClock().pass_time(seconds)
        return text

    def _answered(self, *asked: Any) -> tuple[str, float]:
        """Returns the answer and its latency."""
        started = time.process_time()
        try:
            text = self._written(*asked)
        finally:
            self.cpu += time.process_time() - started
        return text, seconds_of(self.calls[-1].read, self.calls[-1].wrote)

    def text(self, shown: str, room: int) -> str:
        """Returns a summary of at most `room` tokens."""
        raise NotImplementedError

    def _written(self, shown: str, instructions: str, max_output: int | None) -> str:
        length = self.count(shown)
        read = length + self.count(instructions)
        limit = min(MAX_OUTPUT, max_output or MAX_OUTPUT)
        if read + min(limit, int(read * _SHARE)) > self.window:
            self.calls.append(Call(read, 0, refused=True))
            raise DoesNotFit(f"prompt is too long: {read} tokens > {self.window} maximum context length")
        asked = _asked(instructions or shown)
        room = length * _SHARE if asked is None else min(asked, length / 2)
        self.calls.append(Call(read, 0))
        text = self.text(shown, int(min(limit, room)))
        self.calls[-1] = Call(read, self.count(text))
        return text


def _asked(prompt: str) -> float | None:
    """Returns the tokens that a prompt asks for, if it states a length; a word is four thirds of a token."""
    found = _ASKED.search(prompt[:4_000]) or _ASKED.search(prompt[-4_000:])
    if found is None:
        return None
    return int(found[1]) * 4 / 3 if found[1] else int(found[2])


class Keeping(Summariser):
    """Keeps each planted fact of the input with the same chance, among filler. Facts without room are lost."""

    keep = 0.95
    seed = 0
    _filler = (
        "The matter was looked into and settled as agreed.",
        "Details were confirmed before anything was changed.",
        "The person was content and moved on to the next subject.",
        "What was found was passed on in plain words.",
        "Nothing else was left open at that point.",
    )

    def text(self, shown: str, room: int) -> str:
        mark = hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()
        found = list(dict.fromkeys(FACT.findall(shown)))
        chances = {value: self._chance(mark, value) for value in found}
        kept: set[str] = set()
        for value in sorted(found, key=lambda value: chances[value]):
            cost = self.count(f" {value}.")
            if chances[value] >= self.keep or cost > room:
                break
            kept.add(value)
            room -= cost
        filler = []
        for sentence in itertools.cycle(self._filler):
            room -= self.count(f" {sentence}")
            if room < 0:
                break
            filler.append(sentence)
        facts = [f"{value}." for value in found if value in kept]
        return " ".join(_mixed(facts, filler)) or self._filler[-1]

    def _chance(self, mark: str, value: str) -> float:
        digest = hashlib.sha256(f"{self.seed} {mark} {value}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48


def _mixed(some: Sequence[str], others: Sequence[str]) -> list[str]:
    """Returns both as one list, each in its order, spread evenly."""
    placed = [((at + 0.5) / len(some), text) for at, text in enumerate(some)]
    placed += [((at + 0.5) / len(others), text) for at, text in enumerate(others)]
    return [text for _, text in sorted(placed, key=lambda pair: pair[0])]


class Extracting(Summariser):
    """Writes the sentences with the most frequent significant words, in their order (Luhn 1958)."""

    _end = re.compile(r"(?<=[.!?:])\s+|\n+")
    _longest = 120
    """Tokens of a sentence."""

    def text(self, shown: str, room: int) -> str:
        parts = [part.strip() for part in self._end.split(_SPACES.sub(" ", shown))]
        parts = [part for part in parts if len(part) > 20 and not part.startswith(("#", "==="))]
        weights = self._weights(parts)
        chosen: list[int] = []
        for at in sorted(range(len(parts)), key=lambda at: weights[at], reverse=True):
            size = self.count(parts[at]) + 1
            if size <= min(self._longest, room):
                chosen.append(at)
                room -= size
        return "\n".join(parts[at] for at in sorted(chosen)) or shown[:200]

    def _weights(self, parts: Sequence[str]) -> list[float]:
        telling = [significant_words(part) for part in parts]
        frequency = Counter(word for found in telling for word in found)
        lengths = [len(words(part)) + 8 for part in parts]
        return [sum(frequency[word] for word in found) / length for found, length in zip(telling, lengths, strict=True)]


class Down(Summariser):
    """Raises, as a service that is down does."""

    def text(self, shown: str, room: int) -> str:
        del shown, room
        raise SummariserDown("the summariser's service is down")
