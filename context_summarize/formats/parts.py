"""What both formats read alike: the parts of a row, texts, arguments, and messages of an SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from context_summarize.errors import MessageError
from context_summarize.messages.reading import id_of, is_call, is_result, result_block_id, result_value, row_calls
from context_summarize.messages.rows import Call, JsonRow
from context_summarize.messages.text import content_text
from context_summarize.transcript.escaping import without_surrogates


class Result(NamedTuple):
    """The result of a call, read from any shape."""

    id: str
    content: Any
    is_error: bool


def parts_of(row: JsonRow) -> Iterator[Any]:
    """Yields the calls and results of a row, each as a value, and its other blocks, in order."""
    role, content = row["role"], row.get("content")
    if role == "tool":
        yield Result(id_of(row["tool_call_id"]), content, row.get("is_error") is True)
        return
    calls = row_calls(row) if role == "assistant" else iter(())  # those of its blocks come first
    blocks: Sequence[Any] = content if isinstance(content, list | tuple) else [text_of(content)]
    for block in blocks:
        if role == "assistant" and is_call(block):
            yield next(calls)
        elif role == "user" and is_result(block) and (call_id := result_block_id(block)):
            yield Result(call_id, result_value(block), block.get("is_error") is True)
        else:
            yield block
    yield from calls


def text_of(content: Any) -> str:
    """Returns the public text of a content value, without lone surrogates, which no client can encode."""
    return without_surrogates(content_text(content))


def arguments_json(call: Call) -> str:
    """Returns a call's arguments as the JSON text of an object, with its keys in their order."""
    given = call.arguments if isinstance(call.arguments, dict) else {"value": call.arguments}
    return without_surrogates(json.dumps(given, ensure_ascii=False, default=str))


def dicts(messages: Iterable[Any]) -> Iterator[JsonRow]:
    """Yields messages as dicts at every depth; an object of an SDK loses the fields that it does not set.

    Raises:
        MessageError: a message is neither a mapping nor a pydantic model, or has no role.
    """
    for message in map(plain, messages):
        if not isinstance(message, dict):
            raise MessageError(f"expected a dict or an object of an SDK, got {type(message).__name__}")
        if "role" not in message:
            raise MessageError(f"a message needs a role, got the keys {', '.join(map(str, message)) or 'none'}")
        yield message


def plain(value: Any) -> Any:
    """Returns a value with the objects of an SDK in it as dicts."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
