"""Shortens a row in any of its shapes: head and tail of its texts; ids, names and signed blocks stay whole. Pure."""

from __future__ import annotations

from typing import Any

from context_summarize.messages.images import is_image
from context_summarize.messages.json_text import LARGE, compact_json, holds_more
from context_summarize.messages.reading import arguments_of, is_unparsed
from context_summarize.messages.rows import PRIVATE_BLOCKS, JsonRow
from context_summarize.messages.text import content_text

_MIN_CUT = 120
"""Characters below which a piece of text is not worth a note about what was left out."""


def _shorten(text: str, share: float, hint: str) -> str:
    """Two thirds head, one third tail of `share` of the text, with a note in between."""
    kept = int(len(text) * share)
    if len(text) <= _MIN_CUT or kept >= len(text) - 60:
        return text
    head, tail = text[: kept * 2 // 3], text[len(text) - kept // 3 :] if kept >= 3 else ""
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} of {len(text):,} characters left out to save room{hint} …]\n{tail}"


def _shorten_value(value: Any, share: float, hint: str) -> Any:
    if isinstance(value, str):
        return _shorten(value, share, hint)
    if isinstance(value, list):
        return [_shorten_value(item, share, hint) for item in value]
    if isinstance(value, dict):
        if is_image(value):
            return {"type": "text", "text": "[image left out to save room]"}
        # Types, ids and names steer the host; only what they carry is shortened.
        steers = ("type", "id", "tool_call_id", "name")
        return {k: v if k in steers else _shorten_value(v, share, hint) for k, v in value.items()}
    return value


def _shorten_block(block: Any, share: float, hint: str) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in PRIVATE_BLOCKS:
        return block  # signed by the provider; a changed one is refused
    if kind == "tool_call":
        return {**block, "input": _shorten_value(block["input"], share, hint)}
    if kind == "tool_result":
        return {**block, "output": _shorten_value(block.get("output"), share, hint)}
    return _shorten_value(block, share, hint)


def _note(value: Any) -> str:
    if not isinstance(value, str) and holds_more(value, LARGE):
        return f"[… more than {LARGE:,} characters]"
    text = value if isinstance(value, str) else compact_json(value)
    return text if len(text) <= 40 else f"{text[:24]} [… {len(text):,} characters]"


def cut_to_note(row: JsonRow) -> JsonRow:
    """The smallest form of a row: ids, names and signed blocks whole, everything else as a note."""
    out = dict(row)
    content = row.get("content")
    if isinstance(content, str):
        out["content"] = _note(content)
    elif isinstance(content, list):
        whole = [block for block in content if block.get("type") in PRIVATE_BLOCKS]
        calls = [
            {**block, "input": {"left_out": _note(block["input"])} if block["input"] else {}}
            for block in content
            if block.get("type") == "tool_call"
        ]
        results = [{**b, "output": _note(b.get("output"))} for b in content if b.get("type") == "tool_result"]
        texts = [
            block for block in content if block not in whole and block.get("type") not in ("tool_call", "tool_result")
        ]
        said = [{"type": "text", "text": _note(content_text(texts))}] if texts else []
        out["content"] = [*whole, *results, *said, *calls]
    entries = row.get("tool_calls")
    if isinstance(entries, list):
        out["tool_calls"] = [_entry_note(entry) for entry in entries]
    return out


def _entry_note(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    out = dict(entry)
    if isinstance(entry.get("function"), dict):
        given = entry["function"].get("arguments")
        out["function"] = {**entry["function"], "arguments": compact_json({"left_out": _note(given)})}
    if entry.get("arguments"):
        out["arguments"] = {"left_out": _note(entry["arguments"])}
    return out


def shortened_to(row: JsonRow, share: float, hint: str) -> JsonRow:
    """The row with about this share of each of its long texts; `hint` ends the note of what is gone."""
    out = dict(row)
    content = row.get("content")
    if isinstance(content, str):
        out["content"] = _shorten(content, share, hint)
    elif isinstance(content, list):
        out["content"] = [_shorten_block(block, share, hint) for block in content]
    entries = row.get("tool_calls")
    if isinstance(entries, list):
        out["tool_calls"] = [_shorten_entry(entry, share, hint) for entry in entries]
    return out


def _shorten_entry(entry: Any, share: float, hint: str) -> Any:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return _shorten_value(entry, share, hint)
    # Arguments as JSON text have to stay JSON: their values are shortened, not the text.
    given = arguments_of(function["arguments"])
    short = compact_json(_shorten_value({"value": given} if is_unparsed(given) else given, share, hint))
    return {**entry, "function": {**function, "arguments": short}}
