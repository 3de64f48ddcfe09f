"""Shortens a row in any of its shapes: head and tail of its texts; ids, names and signed blocks stay whole. Pure."""

from __future__ import annotations

from typing import Any

from context_summarize.messages.images import is_image
from context_summarize.messages.json_text import compact_json
from context_summarize.messages.reading import arguments_of, block_type
from context_summarize.messages.rows import PRIVATE_BLOCKS, JsonRow
from context_summarize.messages.text import content_text

_MIN_CUT = 120
"""Characters below which a piece of text is not worth a note about what was left out."""
_STEERING = ("type", "id", "tool_call_id", "name", "tool")
"""Keys of a block that steer the host; only what the others carry is shortened."""


def shortened_to(row: JsonRow, share: float, hint: str) -> JsonRow:
    """The row with about this share of each of its long texts; `hint` ends the note of what is gone."""
    out = dict(row)
    content, entries = row.get("content"), row.get("tool_calls")
    if isinstance(content, str):
        out["content"] = _text(content, share, hint)
    elif isinstance(content, list):
        out["content"] = [_block(block, share, hint) for block in content]
    if isinstance(entries, list):
        out["tool_calls"] = [_entry(entry, share, hint) for entry in entries]
    return out


def _text(text: str, share: float, hint: str) -> str:
    """Two thirds head, one third tail of `share` of the text, with a note in between."""
    kept = int(len(text) * share)
    if len(text) <= _MIN_CUT or kept >= len(text) - 60:
        return text
    head, tail = text[: kept * 2 // 3], text[len(text) - kept // 3 :] if kept >= 3 else ""
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} of {len(text):,} characters left out to save room{hint} …]\n{tail}"


def _value(value: Any, share: float, hint: str) -> Any:
    """A value with every long text in it shortened, whatever its key."""
    if isinstance(value, str):
        return _text(value, share, hint)
    if isinstance(value, list):
        return [_value(item, share, hint) for item in value]
    if isinstance(value, dict):
        if is_image(value):
            return {"type": "text", "text": "[image left out to save room]"}
        return {key: _value(item, share, hint) for key, item in value.items()}
    return value


def _block(block: Any, share: float, hint: str) -> Any:
    if block_type(block) in PRIVATE_BLOCKS:
        return block  # signed by the provider; a changed one is refused
    if not isinstance(block, dict) or is_image(block):
        return _value(block, share, hint)
    return {key: item if key in _STEERING else _value(item, share, hint) for key, item in block.items()}


def _entry(entry: Any, share: float, hint: str) -> Any:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict):
        return _block(entry, share, hint)
    given = arguments_of(function.get("arguments"))
    short = _value(given, share, hint)
    # Arguments as JSON text have to stay JSON.
    text = compact_json(short) if isinstance(function.get("arguments"), str) else short
    return {**entry, "function": {**function, "arguments": text}}


def cut_to_note(row: JsonRow) -> JsonRow:
    """The smallest form of a row: ids, names and signed blocks whole, everything else as a note."""
    out = dict(row)
    content, entries = row.get("content"), row.get("tool_calls")
    if isinstance(content, str):
        out["content"] = _note(content)
    elif isinstance(content, list):
        signed = [block for block in content if block["type"] in PRIVATE_BLOCKS]
        calls = [{**one, "input": _arguments_note(one["input"])} for one in content if one["type"] == "tool_call"]
        results = [{**one, "output": _note(one.get("output"))} for one in content if one["type"] == "tool_result"]
        texts = [one for one in content if one["type"] not in (*PRIVATE_BLOCKS, "tool_call", "tool_result")]
        said = [{"type": "text", "text": _note(content_text(texts))}] if texts else []
        out["content"] = [*signed, *results, *said, *calls]
    if isinstance(entries, list):
        out["tool_calls"] = [_entry_note(entry) for entry in entries]
    return out


def _entry_note(entry: JsonRow) -> JsonRow:
    if isinstance(function := entry.get("function"), dict):
        note = compact_json(_arguments_note(function.get("arguments")))
        return {**entry, "function": {**function, "arguments": note}}
    return {**entry, "arguments": _arguments_note(entry["arguments"])} if entry.get("arguments") else entry


def _arguments_note(given: Any) -> JsonRow:
    return {"left_out": _note(given)} if given else {}


def _note(value: Any) -> str:
    text = value if isinstance(value, str) else compact_json(value)
    return text if len(text) <= 40 else f"{text[:24]} [… {len(text):,} characters]"
