"""pi-openai-server-compaction's product-defaults fixtures: eight sessions of 50,000 tokens with 600 questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.real import DATA, read
from benchmarks.sessions import Question, Session, assistant
from benchmarks.tokens import Row

RUN = "benchmarks/product-defaults/final-results/2026-07-23_product-defaults-medium_gpt-5.6-sol"
_KEYS = ("parameter-", "route-source-", "probe-", "corrected-field-", "work-item-")


def load_all(data: Path = DATA) -> list[Session]:
    """Returns all fixtures, each with its shared tail."""
    return [_session(fixture) for fixture in json.loads(read("pi", f"{RUN}/fixtures.json", data=data))]


def _session(fixture: dict[str, Any]) -> Session:
    rows = tuple(row_of(row) for row in [*fixture["messages"], *fixture["sharedTail"]])
    return Session(name=f"pi-{fixture['id']}", rows=rows, questions=tuple(map(_question, fixture["questions"])))


def row_of(message: dict[str, Any]) -> Row:
    """Converts a message of pi's session files to a row as Amplifier's loops store it."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if message["role"] == "toolResult":
        return {"role": "tool", "tool_call_id": message["toolCallId"], "name": message["toolName"], "content": text}
    calls = [(one["id"], one["name"], one["arguments"]) for one in blocks if one["type"] == "toolCall"]
    return {**assistant(text, calls), "role": message["role"]}


def _question(asked: dict[str, Any]) -> Question:
    """Returns a question: a view must hold all parts of the answer, one near the identifier that the question names."""
    named = (word.rstrip("?.,") for word in asked["question"].split())
    subject = next((word for word in named if word.startswith(_KEYS)), None)
    golds = tuple(part.rpartition("=")[2] for part in asked["expected"].split("|") if "-" in part)
    return Question(asked["question"], golds, subject=subject)
