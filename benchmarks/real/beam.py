"""BEAM: conversations of 100,000 and 500,000 tokens with twenty probing questions each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.real import DATA, half, read
from benchmarks.sessions import Question, Session
from benchmarks.tokens import Row
from benchmarks.words import gold_values

_PLAN_MARK = re.compile(r"\s*->->\s*[\d,\s]+$")
"""The generator's own mark at the end of a user message: its place in the plan."""
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
EXACT = frozenset({"information_extraction", "knowledge_update", "multi_session_reasoning", "temporal_reasoning"})
"""Kinds whose answer is a value. The numbers in other answers count the answer's own points."""


def load_all(size: str, sealed: bool = False, data: Path = DATA) -> list[Session]:
    """Returns all chats of a size and a half, in order."""
    paths = (path for path in half("beam", sealed) if path.startswith(f"chats/{size}/") and path.endswith("/chat.json"))
    return [_chat(path, sealed, data) for path in paths]


def _chat(path: str, sealed: bool, data: Path) -> Session:
    turns = [turn for batch in json.loads(read("beam", path, sealed, data)) for one in batch["turns"] for turn in one]
    probes = path.replace("chat.json", "probing_questions/probing_questions.json")
    asked = json.loads(read("beam", probes, sealed, data))
    _, size, number, _ = path.split("/")
    rows = tuple({"role": turn["role"], "content": _PLAN_MARK.sub("", turn["content"])} for turn in turns)
    positions = {turn["id"]: at for at, turn in enumerate(turns)}
    questions = (_question(kind, entry, rows, positions) for kind, entries in asked.items() for entry in entries)
    return Session(name=f"beam-{size}-{number}", rows=rows, questions=tuple(questions))


def _question(kind: str, entry: dict[str, Any], rows: Sequence[Row], positions: Mapping[int, int]) -> Question:
    answer = str(next((entry[name] for name in _ANSWERS if name in entry), ""))
    named = sorted({positions[given] for given in _numbers(entry.get("source_chat_ids")) if given in positions})
    golds = gold_values(answer, [rows[at]["content"] for at in named]) if kind in EXACT else ()
    return Question(entry["question"], golds, sources=tuple(named))


def _numbers(value: object) -> Iterator[int]:
    """Yields all numbers in nested lists and objects."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)
