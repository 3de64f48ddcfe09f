"""Messages of Anthropic's Messages API, with the system prompt apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile
from typing import Any

from context_summarize.formats.parts import Result, arguments_json, dicts, parts_of, plain, text_of
from context_summarize.messages.reading import block_type, with_results_apart
from context_summarize.messages.rows import SYSTEM_ROLES, Call, JsonRow
from context_summarize.messages.text import image_source, is_image

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
"""Signs that neither an id nor the name of a tool may have."""
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_REASONING = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""Blocks with a model's reasoning, and the keys that they need."""


def to_anthropic(rows: Iterable[JsonRow]) -> dict[str, Any]:
    """Returns rows as the arguments `system` and `messages` of the API; without a system prompt `system` is missing.

    The rows are those of a view: each call has its results right behind it. `system` joins the system and developer
    rows at the beginning. Later ones are texts of the user: they keep their place, and the prompt cache its worth.
    Roles alternate, the user's is first; results are first in their message. Left out are texts without a visible
    sign, reasoning without a signature, and reasoning that nothing follows.
    """
    every = [*rows]
    opening = [*takewhile(lambda row: row["role"] in SYSTEM_ROLES, every)]
    system = "\n\n".join(text for row in opening if (text := text_of(row.get("content"))).strip())
    turns = [(row["role"] == "assistant", [*_blocks(row)]) for row in every[len(opening) :]]
    turns = _merged((is_answer, _followed(blocks)) for is_answer, blocks in _merged(turns))
    if turns and turns[0][0]:  # the API refuses a conversation that an answer opens
        turns.insert(0, (False, [{"type": "text", "text": "(The conversation began earlier.)"}]))
    messages = [
        {"role": "assistant" if answer else "user", "content": _results_first(blocks)} for answer, blocks in turns
    ]
    return {"system": system, "messages": messages} if system else {"messages": messages}


def _merged(turns: Iterable[tuple[bool, list[JsonRow]]]) -> list[tuple[bool, list[JsonRow]]]:
    """Returns the turns that have blocks (is an answer, blocks); neighbours of one role are one turn."""
    runs = groupby((turn for turn in turns if turn[1]), key=lambda turn: turn[0])
    return [(is_answer, [block for _, blocks in run for block in blocks]) for is_answer, run in runs]


def _followed(blocks: list[JsonRow]) -> list[JsonRow]:
    """Returns a turn's blocks without reasoning at the end, which the API refuses."""
    while blocks and blocks[-1]["type"] in _REASONING:
        blocks = blocks[:-1]
    return blocks


def _results_first(blocks: list[JsonRow]) -> list[JsonRow]:
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _blocks(row: JsonRow) -> Iterator[JsonRow]:
    for part in parts_of(row):
        if isinstance(part, Call):
            name = _FORBIDDEN.sub("_", part.name)[:128] or "tool"
            given = json.loads(arguments_json(part), parse_constant=str)  # no client sends NaN
            yield {"type": "tool_use", "id": _FORBIDDEN.sub("_", part.id), "name": name, "input": given}
        elif isinstance(part, Result):
            yield _result(part)
        elif row["role"] != "assistant":
            yield from _shown(part)
        elif keys := _REASONING.get(block_type(part)):
            if part.get(keys[-1]):
                yield {"type": part["type"], **{key: part.get(key) or "" for key in keys}}
        else:
            yield from _text(part)


def _result(result: Result) -> JsonRow:
    """Returns a result; an empty one has no content, and is then no error."""
    is_list = isinstance(result.content, list | tuple)
    shown = [part for block in (result.content if is_list else [result.content]) for part in _shown(block)]
    content = {"content": shown if is_list else shown[0]["text"]} if shown else {}
    error = {"is_error": True} if shown and result.is_error else {}
    return {"type": "tool_result", "tool_use_id": _FORBIDDEN.sub("_", result.id), **content, **error}


def _shown(block: Any) -> Iterator[JsonRow]:
    """Yields what a user or a result may show: an image that the API can read, or a text."""
    source = image_source(block) if is_image(block) else None
    if source and source.get("media_type", _IMAGES[0]) in _IMAGES:
        yield {"type": "image", "source": source}
    else:
        yield from _text(block)


def _text(value: Any) -> Iterator[JsonRow]:
    text = text_of([value])
    if text.strip():
        yield {"type": "text", "text": text}


def from_anthropic(messages: Iterable[Any], system: Any = "") -> list[JsonRow]:
    """Returns messages of the API as rows for `add_message`; each is a dict, or an answer of the SDK.

    `from_anthropic(**to_anthropic(rows))` is the way back. Each result becomes a row of its own.

    Raises:
        MessageError: a message is neither, or has no role.
    """
    rows: list[JsonRow] = [{"role": "system", "content": text}] if (text := text_of(plain(system))) else []
    for message in dicts(messages):
        rows += with_results_apart({"role": message["role"], "content": message.get("content") or ""})
    return rows
