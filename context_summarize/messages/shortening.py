"""Shortens a row in any of its shapes: head and tail of its texts; ids, names and signed blocks stay whole. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from context_summarize.messages.reading import arguments_of, block_type
from context_summarize.messages.rows import PRIVATE_BLOCKS, JsonRow, compact_json
from context_summarize.messages.text import content_text, is_image

Short: TypeAlias = Callable[[Any], Any]
_NO_IMAGE = "[image left out to save room]"
_STEERING = ("type", "id", "tool_call_id", "name", "tool")
"""Keys of a block that control the host. Only the values of other keys are shortened."""
_FIRST = (*PRIVATE_BLOCKS, "tool_result")
"""Blocks that providers require before texts and calls."""


def shortened_to(row: JsonRow, share: float, hint: str) -> JsonRow:
    """Returns the row with about this share of each long text; `hint` ends the note about the rest."""
    return _with_short(row, lambda value: _value(value, share, hint))


def cut_to_note(row: JsonRow) -> JsonRow:
    """Returns the smallest form of a row: ids, names and signed blocks, and notes in place of texts and values."""
    if isinstance(blocks := row.get("content"), list):
        first = [block for block in blocks if block["type"] in _FIRST]
        calls = [block for block in blocks if block["type"] == "tool_call"]
        texts = [block for block in blocks if block["type"] not in (*_FIRST, "tool_call")]
        said = [{"type": "text", "text": content_text(texts)}] if texts else []
        row = {**row, "content": [*first, *said, *calls]}
    return _with_short(row, _note)


def _with_short(row: JsonRow, short: Short) -> JsonRow:
    lists = {key: row[key] for key in ("content", "tool_calls") if isinstance(row.get(key), list)}
    out = {**row, **{key: [_block(block, short) for block in blocks] for key, blocks in lists.items()}}
    return {**out, "content": short(out["content"])} if isinstance(out.get("content"), str) else out


def _block(block: Any, short: Short) -> Any:
    """Returns the short form of a block, or of an entry of `tool_calls`."""
    if block_type(block) in PRIVATE_BLOCKS:
        return block  # signed by the provider; a changed one is refused
    if is_image(block):
        return {"type": "text", "text": _NO_IMAGE}
    if isinstance(function := block.get("function"), dict):
        shown = short(arguments_of(given := function.get("arguments")))
        shown = compact_json(shown) if isinstance(given, str) else shown  # JSON text has to stay JSON
        return {**block, "function": {**function, "arguments": shown}}
    return {key: item if key in _STEERING else short(item) for key, item in block.items()}


def _text(text: str, share: float, hint: str) -> str:
    """Returns `share` of the text: two thirds head and one third tail, with a note in between; a short text whole."""
    kept = int(len(text) * share)
    head, tail = text[: kept * 2 // 3], text[len(text) - kept // 3 :]
    left_out = len(text) - len(head) - len(tail)
    short = f"{head}\n[… {left_out:,} of {len(text):,} characters left out to save room{hint} …]\n{tail}"
    return min(text, short, key=len)


def _value(value: Any, share: float, hint: str) -> Any:
    """Returns a value with every long text in it shortened, whatever its key."""
    if isinstance(value, str):
        return _text(value, share, hint)
    if isinstance(value, list):
        return [_value(item, share, hint) for item in value]
    if isinstance(value, dict):
        if is_image(value):
            return {"type": "text", "text": _NO_IMAGE}
        return {key: _value(item, share, hint) for key, item in value.items()}
    return value


def _note(value: Any) -> Any:
    """Returns a note in place of a long value; a dict stays a dict."""
    text = value if isinstance(value, str) else compact_json(value)
    if len(text) <= 40:
        return value
    note = f"{text[:24]} [… {len(text):,} characters]"
    return {"left_out": note} if isinstance(value, dict) else note
