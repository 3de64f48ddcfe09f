"""Turns items of OpenAI's Responses API into messages. Codex's rollouts hold one a line, and events about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from context_summarize.messages.reading import arguments_of, id_of
from context_summarize.messages.rows import JsonRow
from context_summarize.messages.text import content_text

SYNTHETIC = {"amplifier:input": {"origin": "synthetic"}}
"""Mark of a user row that the program has written."""


def request_of(value: Any) -> Any:
    """Returns a request of the API as one with `system` and `messages`; any other value as it is."""
    if not isinstance(value, dict) or "type" in value or not isinstance(asked := value.get("input"), list | str):
        return value
    return {
        "system": value.get("instructions"),
        "messages": [{"role": "user", "content": asked}] if isinstance(asked, str) else asked,
    }


class Items:
    """Reads items, and the events by which Codex says what the user typed."""

    def __init__(self) -> None:
        self._typed: list[str] = []

    def has_read(self, line: Mapping[str, Any]) -> bool:
        """Returns True for a line of Codex that repeats a typed text, or is the file's header: it gives no row."""
        kind, payload = line.get("type"), line.get("payload")
        if kind != "event_msg" or not isinstance(payload, dict) or payload.get("type") != "user_message":
            return kind == "session_meta"
        if isinstance(text := payload.get("message"), str) and text.strip():
            self._typed.append(text.strip())
        return True

    def mark(self, rows: Iterable[JsonRow]) -> None:
        """Marks the user rows of Codex that the user did not type, such as a description of the environment."""
        for row in rows if self._typed else ():
            if row["role"] == "user" and not any(text in content_text(row.get("content")) for text in self._typed):
                row["metadata"] = {**row.get("metadata", {}), **SYNTHETIC}


def message_of(entry: Mapping[str, Any]) -> JsonRow | None:
    """Returns the message of an item, bare or in a line of Codex; None if it is none.

    A call becomes an assistant's block, its output a tool row. Reasoning stays a block of the answer that follows it.
    """
    kind, call_id, payload = entry.get("type"), id_of(entry.get("call_id")), entry.get("payload")
    if kind == "response_item" and isinstance(payload, dict):
        message, time = message_of(payload), entry.get("timestamp")
        return {**message, "metadata": {"timestamp": time}} if message and time else message
    if kind == "message" and "role" in entry:
        return dict(entry)
    if kind == "reasoning":
        return {"role": "assistant", "content": [dict(entry)]}
    if not isinstance(kind, str) or not call_id:
        return None
    if kind.endswith("_call"):
        given = next((entry[key] for key in ("arguments", "input", "action") if key in entry), None)
        named = {"id": call_id, "name": str(entry.get("name") or kind.removesuffix("_call"))}
        return {"role": "assistant", "content": [{"type": "tool_call", **named, "input": arguments_of(given)}]}
    output = entry.get("output")
    said = output["content"] if isinstance(output, dict) and "content" in output else output
    return {"role": "tool", "tool_call_id": call_id, "content": said or ""} if kind.endswith("_output") else None
