"""One cell: a chat played to a contestant in virtual time, summarised by extracted sentences, and its last view."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import re
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType

from benchmarks.field.contestants import Entry, FieldTerms, entries
from benchmarks.field.measure import Play
from benchmarks.field.model import StandIn, Traits
from benchmarks.field.result import Prices, Result
from benchmarks.field.scenarios import Scenario
from benchmarks.field.views import HEADS, Count, Counting
from benchmarks.field.virtual import run_virtually
from benchmarks.peers import LoopClock, Row, text_of
from benchmarks.peers.base import calls_of
from benchmarks.real import recall
from benchmarks.real.chats import Chat
from benchmarks.real.scoring import extract
from context_summarize.tokens.counter import TokenCounter
from context_summarize.tokens.measure import measure

RECALL = "recall"
"""Not a contestant: every question of a chat is put to this module's recall, once."""
HEAD, SUMMARY, VERBATIM = "head", "summary", "verbatim"
SECONDS = 300
"""Real time after which a cell is given up."""
_END = {"role": "assistant", "content": "That is all."}
"""Played after a chat, so that the last request holds every message."""
_SPACES = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A row of a view."""

    text: str
    size: int
    """Tokens."""
    kind: str
    """`head` (the system prompt), `summary` (made by the contestant) or `verbatim` (a message of the chat)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What came of a contestant in a chat."""

    result: Result | None
    """None for recall."""
    view: tuple[Piece, ...]
    """Of the last request, after the last message; empty where that request was lost."""
    found: tuple[bool, ...]
    """Of recall: for each question with gold values, whether one answer holds them all."""

    def as_json(self) -> str:
        """For a file."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Cell:
        """What `as_json` wrote."""
        told = json.loads(text)
        result = Result(**told["result"]) if told["result"] else None
        return cls(result, tuple(Piece(**one) for one in told["view"]), tuple(told["found"]))


@dataclass(slots=True)
class Extractor(StandIn):
    """A stand-in that writes the sentences with the most frequent words, in the room that the field's stand-in has."""

    def _text(self, shown: str, room: int) -> str:
        return extract(_SPACES.sub(" ", shown), room, self.count)


def said(row: Row) -> str:
    """All that a row says: its text, and the arguments of its calls."""
    return "\n".join([text_of(row), *(json.dumps(call["arguments"]) for call in calls_of(row))]).strip()


def pieces(rows: Sequence[Row], spoken: frozenset[str], count: Count) -> tuple[Piece, ...]:
    """A view's rows; `spoken` are the texts of the chat's own messages."""
    return tuple(Piece(said(row), measure(row, count), _kind(row, spoken)) for row in rows)


def _kind(row: Row, spoken: frozenset[str]) -> str:
    if text_of(row) not in spoken:
        return SUMMARY
    return HEAD if row["role"] in HEADS else VERBATIM


def play(chat: Chat, contestant: str, budget: int, traits: Traits, prices: Prices) -> Cell:
    """Play it.

    Raises:
        ImportError: the contestant is not installed.
        TimeoutError: it took longer than `SECONDS`.
        ValueError: its adapter does not convert the chat without loss.
    """
    with _quiet(), _in_time():
        if contestant == RECALL:
            return Cell(None, (), tuple(map(bool, asyncio.run(recall.measure([chat], None)).gold)))
        return run_virtually(_played(chat, entries()[contestant], budget, traits, prices))


async def _played(chat: Chat, entry: Entry, budget: int, traits: Traits, prices: Prices) -> Cell:
    counter = TokenCounter()
    await counter.load()
    count = functools.lru_cache(maxsize=200_000)(counter.count)
    rows = [*chat.rows(), _END]
    settled = Traits(**{**asdict(traits), "window": budget + traits.max_output})
    model = Extractor(count, settled)
    terms = _terms(rows, budget, counter.count, model)
    if entry.make(terms).convert(rows) != rows:
        raise ValueError("its adapter does not convert the rows without loss")
    scenario = Scenario(name=chat.name, title=chat.name, rows=list, facts=0, budget=budget)
    played = Play(entry, scenario, rows, (), terms, model, prices)
    result = await played.run()
    result.series, result.waits = [], []
    lost = result.lost_turns and result.requests == result.lost_turns
    spoken = frozenset(text_of(row) for row in rows)
    return Cell(result, () if lost else pieces(played.last_view, spoken, count), ())


def _terms(rows: Sequence[Row], budget: int, count: Count, model: Extractor) -> FieldTerms:
    others = [row for row in rows if row["role"] != "system"]
    return FieldTerms(
        answer=model.ask_plainly,
        reads=model.ask,
        count=Counting(count),
        budget=budget,
        system="\n\n".join(text_of(row) for row in rows if row["role"] == "system"),
        mean_row=sum(measure(row, count) for row in others) / max(1, len(others)),
        clock=LoopClock(),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Contestants tell of every failure; the tables count them."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextmanager
def _in_time() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TimeoutError(f"took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
