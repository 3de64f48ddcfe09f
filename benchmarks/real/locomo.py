"""LoCoMo: ten chats of two friends over months, with about two hundred questions each."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.real.chats import DATA, Chat, DataMissingError, Message, Question
from benchmarks.real.scoring import gold_values, places

_ARCHIVE = Path("locomo") / "data" / "locomo10.zip"
_TURN = re.compile(r"D(\d+):(\d+)")
_KINDS = {1: "several turns", 2: "time", 3: "inference", 4: "one turn", 5: "adversarial"}


def load_all(data: Path = DATA) -> list[Chat]:
    """All chats, in the order of their numbers.

    Raises:
        DataMissingError: the archive is not fetched.
    """
    path = data / _ARCHIVE
    if not path.is_file():
        raise DataMissingError(f"{path} is missing; run python -m benchmarks.real.fetch")
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".json") and "__MACOSX" not in name)
        return [_chat(f"locomo-{Path(name).stem}", json.loads(archive.read(name))) for name in names]


def _chat(name: str, read: dict[str, Any]) -> Chat:
    turns = list(_turns(read))
    messages = tuple(message for _, message in turns)
    positions = {key: at for at, (key, _) in enumerate(turns)}
    return Chat(name, messages, tuple(_question(entry, messages, positions) for entry in read["qa"]))


def _turns(read: dict[str, Any]) -> Iterator[tuple[tuple[int, int], Message]]:
    """Session, turn and message. The first message of a session names its date, as no other place would."""
    session = 1
    while (said := read.get(f"session_{session}")) is not None or f"session_{session + 1}" in read:
        for at, turn in enumerate(said or ()):
            text = f"{turn['speaker']}: {turn.get('clean_text') or turn['text']}"
            if caption := turn.get("blip_caption"):
                text += f" [shares {caption}]"
            if at == 0:
                text = f"[{read[f'session_{session}_date_time']}]\n{text}"
            role = "user" if turn["speaker"] == read["speaker_a"] else "assistant"
            yield _key(turn["dia_id"]), Message(role, text)
        session += 1


def _question(entry: dict[str, Any], messages: tuple[Message, ...], positions: dict[tuple[int, int], int]) -> Question:
    named = _TURN.findall(" ".join(map(str, entry.get("evidence") or ())))
    keys = ((int(session), int(turn)) for session, turn in named)
    sources = tuple(sorted({positions[key] for key in keys if key in positions}))
    answer = str(entry.get("answer", entry.get("adversarial_answer", "")))
    texts = [messages[at].content for at in sources]
    whole = bool(answer) and any(places(text, answer) for text in texts)
    golds = (answer,) if whole else gold_values(answer, texts)
    return Question(_KINDS[entry["category"]], entry["question"], answer, sources, golds)


def _key(given: str) -> tuple[int, int]:
    session, turn = _TURN.findall(given)[0]
    return int(session), int(turn)
