"""Messages of OpenAI's Chat Completions API, which many servers have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from context_summarize.formats.parts import Result, arguments_json, dicts, parts_of, text_of
from context_summarize.messages.rows import SYSTEM_ROLES, Call, JsonRow
from context_summarize.messages.text import image_url, is_image

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REASONING = ("reasoning_content", "reasoning_details")
"""Keys of servers that refuse a turn with calls without them; other servers' answers have none."""


def to_openai(rows: Iterable[JsonRow]) -> list[Any]:
    """Returns rows as messages of the API, without metadata and keys that it does not know.

    The rows are those of a view: each call has its results right behind it. A row that holds neither text nor image nor
    call is left out. The API takes images from users alone: an image in another row becomes a line that names it.
    """
    return [message for row in rows for message in _messages(row)]


def _messages(row: JsonRow) -> Iterator[JsonRow]:
    role = row["role"] if row["role"] in (*SYSTEM_ROLES, "assistant") else "user"
    calls: list[JsonRow] = []
    blocks: list[Any] = []
    for part in parts_of(row):
        if isinstance(part, Result):
            yield {"role": "tool", "tool_call_id": text_of(part.id), "content": text_of(part.content)}
        elif isinstance(part, Call):
            function = {"name": text_of(part.name) or "tool", "arguments": arguments_json(part)}
            calls.append({"id": text_of(part.id), "type": "function", "function": function})
        else:
            blocks.append(part)
    content = _of_user(blocks) if role == "user" else text_of(blocks)
    name = row.get("name")
    named = {"name": name} if isinstance(name, str) and _NAME.fullmatch(name) else {}
    if content or calls:
        kept = {key: row[key] for key in _REASONING if row.get(key)}
        yield {"role": role, "content": content or None, **named, **kept, **({"tool_calls": calls} if calls else {})}


def _of_user(blocks: Sequence[Any]) -> str | list[JsonRow]:
    """Returns a user's texts and images; a single text as it is."""
    parts: list[JsonRow] = []
    for block in blocks:
        if is_image(block) and (url := image_url(block)):
            parts.append({"type": "image_url", "image_url": {"url": url}})
        elif text := text_of([block]):
            parts.append({"type": "text", "text": text})
    return str(parts[0]["text"]) if len(parts) == 1 and "text" in parts[0] else parts


def from_openai(messages: Iterable[Any]) -> list[JsonRow]:
    """Returns messages of the API as rows for `add_message`; each is a dict, or a message of the SDK.

    A refusal becomes the text of its answer. Keys that neither a row nor the API needs are left out.

    Raises:
        MessageError: a message is neither, or has no role, as a whole response.
    """
    return [_row(message) for message in dicts(messages)]


def _row(message: JsonRow) -> JsonRow:
    row = {"role": message["role"], "content": message.get("content") or message.get("refusal") or ""}
    kept = ("name", "tool_call_id", "tool_calls", "metadata", *_REASONING)
    return row | {key: message[key] for key in kept if message.get(key)}
