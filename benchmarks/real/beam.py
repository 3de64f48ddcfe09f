"""BEAM: conversations of 100,000 and 500,000 tokens with twenty probing questions each. Some chats are held back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.real.chats import DATA, Chat, DataMissingError, Message, Question, read_json
from benchmarks.real.scoring import gold_values

OPEN: Mapping[str, range] = {"100K": range(1, 11), "500K": range(1, 5)}
"""Chats of each size that may be read. The others are held back for a judgement that nobody can tune for."""
_PLAN_MARK = re.compile(r"\s*->->\s*[\d,\s]+$")
"""The generator's own mark at the end of a user message: its place in the plan."""
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
EXACT = frozenset({"information_extraction", "knowledge_update", "multi_session_reasoning", "temporal_reasoning"})
"""Kinds whose answer is a value. The numbers in other answers count the answer's own points."""


def load(size: str, number: int, data: Path = DATA) -> Chat:
    """One chat.

    Raises:
        DataMissingError: the chat is held back, or is not fetched.
    """
    if number not in OPEN.get(size, ()):
        open_ones = ", ".join(f"{name}: {chats[0]} to {chats[-1]}" for name, chats in OPEN.items())
        raise DataMissingError(f"BEAM chat {size}/{number} is held back and is never read; open are {open_ones}")
    folder = data / "beam" / "chats" / size / str(number)
    chat: Any = read_json(folder / "chat.json")
    turns = [turn for batch in chat for turns in batch["turns"] for turn in turns]
    messages = tuple(Message(turn["role"], _PLAN_MARK.sub("", turn["content"])) for turn in turns)
    asked: Any = read_json(folder / "probing_questions" / "probing_questions.json")
    positions = {turn["id"]: at for at, turn in enumerate(turns)}
    questions = (_question(kind, entry, messages, positions) for kind, entries in asked.items() for entry in entries)
    return Chat(f"beam-{size}-{number}", messages, tuple(questions))


def load_all(size: str, data: Path = DATA) -> list[Chat]:
    """All open chats of a size, in order."""
    return [load(size, number, data) for number in OPEN[size]]


def _question(kind: str, entry: dict[str, Any], messages: tuple[Message, ...], positions: dict[int, int]) -> Question:
    answer = str(next((entry[name] for name in _ANSWERS if name in entry), ""))
    named = {positions[given] for given in _numbers(entry.get("source_chat_ids")) if given in positions}
    golds = gold_values(answer, [messages[at].content for at in named]) if kind in EXACT else ()
    instruction = entry.get("instruction_being_tested")
    return Question(kind, entry["question"], answer, tuple(sorted(named)), golds, instruction)


def _numbers(value: object) -> Iterator[int]:
    """All numbers in nested lists and objects."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
