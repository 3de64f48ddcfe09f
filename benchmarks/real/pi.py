"""pi-openai-server-compaction's product-defaults fixtures: eight sessions of 50,000 tokens with 600 questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.real.chats import DATA, Chat, Message, Question, read_json
from benchmarks.real.scoring import places

RUN = Path("pi/benchmarks/product-defaults/final-results/2026-07-23_product-defaults-medium_gpt-5.6-sol")
_KEYS = ("parameter-", "route-source-", "probe-", "corrected-field-", "work-item-")


def load_all(data: Path = DATA) -> list[Chat]:
    """All fixtures, each with its shared tail.

    Raises:
        DataMissingError: the fixtures are not fetched.
    """
    fixtures: Any = read_json(data / RUN / "fixtures.json")
    return [_chat(fixture) for fixture in fixtures]


def anchors(data: Path = DATA) -> Mapping[str, float]:
    """Published shares of exact answers by arm (`full_context`, `pi_default`, `native_extension`), a model answering.

    Raises:
        DataMissingError: the summary is not fetched.
    """
    summary: Any = read_json(data / RUN / "summary.json")
    return {arm: found["accuracy"] for arm, found in summary["byArm"].items()}


def _chat(fixture: dict[str, Any]) -> Chat:
    messages = tuple(_message(row) for row in [*fixture["messages"], *fixture["sharedTail"]])
    return Chat(f"pi-{fixture['id']}", messages, tuple(_question(asked, messages) for asked in fixture["questions"]))


def _message(row: dict[str, Any]) -> Message:
    content = row["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if row["role"] == "toolResult":
        return Message("tool", text, {"tool_call_id": row["toolCallId"], "name": row["toolName"]})
    calls = [block for block in blocks if block["type"] == "toolCall"]
    return Message(row["role"], text, called(text, [(one["id"], one["name"], one["arguments"]) for one in calls]))


def called(text: str, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
    """What an assistant's row with tool calls (id, name, arguments) holds beside its role; empty without calls."""
    if not calls:
        return {}
    said = [{"type": "text", "text": text}] if text else []
    made = [{"type": "tool_call", "id": i, "name": name, "input": arguments} for i, name, arguments in calls]
    kept = [{"id": i, "tool": name, "arguments": arguments} for i, name, arguments in calls]
    return {"content": [*said, *made], "tool_calls": kept}


def _question(asked: dict[str, Any], messages: tuple[Message, ...]) -> Question:
    """The answer's parts must all stand in a view, and one of them near the identifier that the question names."""
    words = (word.rstrip("?.,") for word in asked["question"].split())
    subject = next((word for word in words if word.startswith(_KEYS)), None)
    answer = asked["expected"]
    golds = tuple(part.rpartition("=")[2] for part in answer.split("|") if "-" in part)
    hits = Counter(at for gold in golds for at, one in enumerate(messages) if places(one.content, gold))
    sources = tuple(sorted(at for at, found in hits.items() if found == len(golds)))
    return Question(asked["category"], asked["question"], answer, sources, golds, subject=subject)
