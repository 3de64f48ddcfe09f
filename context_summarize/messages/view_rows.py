"""Makes the rows of a view, in shapes that the host and every provider accept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from amplifier_core.message_models import Message

from context_summarize.messages.host_copy import TIME
from context_summarize.messages.reading import (
    arguments_of,
    block_type,
    call_entries,
    id_of,
    is_call,
    is_result,
    result_block_id,
    result_value,
)
from context_summarize.messages.rows import NO_RESULT, SHOWN, SOURCE, Call, JsonRow, Row, compact_json, copy_json
from context_summarize.messages.text import block_text, content_text, image_source, is_image

_PUBLIC = "amplifier_public_"
"""Beginning of the metadata keys that say how a host shows a row."""
_WRITTEN = ("content", "tool_calls", "metadata")
"""Keys of a row that a view writes anew."""
_HOST_TYPES = ("text", "thinking", "redacted_thinking", "reasoning")
"""Blocks that hosts accept unchanged, besides calls, results and images."""


def view_row(row: Row, answered: Sequence[str] | None = None) -> JsonRow | None:
    """Returns a copy of the row that the host's `Message` accepts; None if a view may not show the row.

    `answered` lists the ids of the calls that this row's results answer; other results are orphans and left out.
    """
    raw = row.raw
    if row.hidden:
        return None
    if row.role == "tool" and not row.rendered:
        # A tool row of a hook, or an ephemeral one, answers no call, so it must not be a result.
        return {"role": "user", "content": content_text(raw.get("content")), "metadata": _marks(raw)}
    if row.role == "tool" and not answered:
        return None
    out: JsonRow = {key: copy_json(value) for key, value in raw.items() if key not in _WRITTEN}
    out |= {"content": _content(row, Counter(answered or ())), "metadata": _marks(raw)}
    if row.result_ids and row.role == "user" and out["content"] == [] and raw.get("content"):
        return None
    if row.role == "tool":
        out["tool_call_id"] = row.result_ids[0]
    if row.calls and (entries := call_entries(raw)):
        out["tool_calls"] = [{**copy_json(entry), "id": id_of(entry["id"])} for entry in entries]
    return _mended(out, row) if refusal(out) else out


def _marks(raw: JsonRow) -> JsonRow:
    """Returns the metadata of a view's row, which is never empty.

    The time is left out. A model does not need it, and if a host changed it, the provider's prompt cache would be lost.
    Copies that newer hosts keep for their own screen are left out too.
    """
    marks = raw.get("metadata")
    kept = marks.items() if isinstance(marks, dict) else ()
    shown = {str(key): copy_json(item) for key, item in kept if key != TIME and not str(key).startswith(_PUBLIC)}
    return {**SHOWN, **shown}


def _content(row: Row, keep: Counter[str]) -> Any:
    content = row.raw.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list | tuple):
        return compact_json(content)
    out: list[JsonRow] = []
    for block in content:
        if row.result_ids and row.role == "user" and is_result(block):
            call_id = result_block_id(block)
            if keep[call_id] > 0:
                keep[call_id] -= 1
                out.append(_result(block, call_id))
        elif row.calls and is_call(block):
            out.append(_call(block))
        else:
            out.append(_block(block))
    return out


def _call(block: Mapping[str, Any]) -> JsonRow:
    arguments = arguments_of(block.get("input"))
    given = arguments if isinstance(arguments, dict) else {"value": arguments}
    named = {"type": "tool_call", "id": id_of(block["id"]), "name": str(block.get("name") or "")}
    return {**copy_json(block), **named, "input": {str(key): copy_json(item) for key, item in given.items()}}


def _result(block: Mapping[str, Any], call_id: str) -> JsonRow:
    value = copy_json(result_value(block))
    kept: JsonRow = copy_json({key: item for key, item in block.items() if key not in ("tool_use_id", "content")})
    return {**kept, "tool_call_id": call_id, "output": "" if value is None else value}


def _block(block: Any) -> JsonRow:
    """Returns a block that is no call and no result; a block that hosts do not know becomes text."""
    if block_type(block) in _HOST_TYPES or (block_type(block) == "image" and isinstance(block.get("source"), dict)):
        copied: JsonRow = copy_json(block)
        return copied
    if is_image(block) and (source := image_source(block)):
        return {"type": "image", "source": source}
    return {"type": "text", "text": block_text(block)}


def _mended(out: JsonRow, row: Row) -> JsonRow:
    """Returns the row in a form that `amplifier_core.message_models.Message` accepts. Texts, calls and ids stay."""
    safe: JsonRow = {key: out[key] for key in ("role", "content", "metadata")}
    if isinstance(out["content"], list):
        safe["content"] = [_mended_block(block, row.role) for block in out["content"]]
    kinds = {"name": str, "tool_call_id": str, "tool_calls": list}
    safe |= {key: out[key] for key, kind in kinds.items() if isinstance(out.get(key), kind)}
    return safe


def refusal(row: JsonRow) -> str | None:
    """Returns why the host's own message model refuses a row; None if it accepts it."""
    try:
        Message(**row)
    except (ValueError, TypeError) as error:
        return " ".join(str(error).split())
    return None


def _mended_block(block: JsonRow, role: str) -> JsonRow:
    """Returns a block that the host's models accept, at worst as text. Ids and results stay."""
    if not refusal({"role": role, "content": [block]}):
        return block
    kept = {k: v for k, v in block.items() if isinstance(k, str) and k != "visibility"}
    return {"type": "text", "text": block_text(block)} if refusal({"role": role, "content": [kept]}) else kept


def synthetic_result(call: Call) -> JsonRow:
    """Returns the result row that a view gives to an abandoned call."""
    return {
        "role": "tool",
        "tool_call_id": call.id,
        "name": call.name,
        "content": NO_RESULT,
        "metadata": {**SHOWN, "source": SOURCE, "synthetic": True},
    }


_CONTINUATION = ":response_id"
"""Metadata keys that end so, after a provider's name, hold the id of a conversation on the provider's server."""


def continues(row: JsonRow) -> bool:
    """Returns True for a row with a server-side continuation id."""
    metadata = row.get("metadata")
    return isinstance(metadata, dict) and any(str(key).endswith(_CONTINUATION) for key in metadata)


_THINKING = ("thinking", "redacted_thinking")
_BESIDE = (*_THINKING, "thinking_block", "thinking_text")
"""Keys under which hosts and providers keep thinking beside the content."""


def unbound(row: JsonRow, *, keeps_thinking: bool) -> JsonRow | None:
    """Returns an assistant's row without what binds it to the rows that were before it; None if nothing is left.

    A compaction changes those rows. With its continuation id a provider for reasoning models then sends
    `previous_response_id`, and the server restores what the compaction has removed; an API that signs thinking for
    exact rows before it (newest Claude models) refuses it after others.
    """
    metadata = {key: item for key, item in row["metadata"].items() if not key.endswith(_CONTINUATION)}
    if keeps_thinking:
        return {**row, "metadata": metadata}
    kept = {key: item for key, item in {**row, "metadata": metadata}.items() if key not in _BESIDE}
    out: JsonRow = {key: item if key == "tool_calls" else _without_thinking(item) for key, item in kept.items()}
    is_less = len(kept) < len(row) or out["content"] != row["content"]
    return None if is_less and not out.get("tool_calls") and not content_text(out["content"]).strip() else out


def _without_thinking(value: Any) -> Any:
    """Returns content or metadata without blocks of thinking, at any depth but within other blocks."""
    if isinstance(value, list):
        kept = [item for item in value if block_type(item) not in _THINKING]
        return [item if block_type(item) else _without_thinking(item) for item in kept]
    if isinstance(value, dict):
        return {key: _without_thinking(item) for key, item in value.items() if key not in _BESIDE}
    return value
