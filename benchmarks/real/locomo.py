"""LoCoMo: ten chats of two friends over months, with about two hundred questions each."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.real import DATA, read
from benchmarks.sessions import Question, Session
from benchmarks.tokens import Row
from benchmarks.words import gold_values, places

_TURN = re.compile(r"D(\d+):(\d+)")
_BUDGET = 8_000


def load_all(data: Path = DATA) -> list[Session]:
    """Returns all chats, in the order of their numbers."""
    with zipfile.ZipFile(BytesIO(read("locomo", "data/locomo10.zip", data=data))) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".json") and "__MACOSX" not in name)
        return [_chat(f"locomo-{Path(name).stem}", json.loads(archive.read(name))) for name in names]


def _chat(name: str, read: dict[str, Any]) -> Session:
    turns = list(_turns(read))
    rows = tuple(row for _, row in turns)
    positions = {key: at for at, (key, _) in enumerate(turns)}
    questions = tuple(_question(entry, rows, positions) for entry in read["qa"])
    return Session(name=name, rows=rows, budget=_BUDGET, questions=questions)


def _turns(read: dict[str, Any]) -> Iterator[tuple[tuple[int, int], Row]]:
    """Yields each row with its session and turn. Only the first row of a session names the date."""
    session = 1
    while (spoken := read.get(f"session_{session}")) is not None or f"session_{session + 1}" in read:
        for at, turn in enumerate(spoken or ()):
            text = f"{turn['speaker']}: {turn.get('clean_text') or turn['text']}"
            if caption := turn.get("blip_caption"):
                text += f" [shares {caption}]"
            if at == 0:
                text = f"[{read[f'session_{session}_date_time']}]\n{text}"
            role = "user" if turn["speaker"] == read["speaker_a"] else "assistant"
            yield _key(turn["dia_id"]), {"role": role, "content": text}
        session += 1


def _question(entry: dict[str, Any], rows: Sequence[Row], positions: Mapping[tuple[int, int], int]) -> Question:
    named = _TURN.findall(" ".join(map(str, entry.get("evidence") or ())))
    keys = ((int(session), int(turn)) for session, turn in named)
    sources = tuple(sorted({positions[key] for key in keys if key in positions}))
    answer = str(entry.get("answer", entry.get("adversarial_answer", "")))
    texts = [rows[at]["content"] for at in sources]
    whole = bool(answer) and any(places(text, answer) for text in texts)
    golds = (answer,) if whole else gold_values(answer, texts)
    return Question(entry["question"], golds, sources=sources)


def _key(given: str) -> tuple[int, int]:
    session, turn = _TURN.findall(given)[0]
    return int(session), int(turn)
