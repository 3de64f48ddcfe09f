"""The public text of rows and blocks, and JSON that is equal for equal data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_summarize.messages.images import image_note, is_image
from context_summarize.messages.reading import block_type, blocks_of, id_of, is_result, result_block_id
from context_summarize.messages.rows import CALL_BLOCKS, NO_RESULT, PRIVATE_BLOCKS, TEXT_BLOCKS, Call, Row
from context_summarize.transcript.calls import ORPHAN, call_line


def compact_json(value: Any) -> str:
    """JSON with sorted keys, so that equal data gives equal text on every machine."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def saved_json(value: Any) -> str:
    """The same without None, which hosts do not save: a summary's key must not depend on it."""
    text = compact_json(value)
    try:
        return compact_json(_without_none(value)) if "null" in text else text
    except RecursionError:
        return text


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value


def content_text(content: Any) -> str:
    """The public text of a content value: a string, blocks, or data. Thinking is left out, images become a note."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return saved_json(content)
    parts = (block_text(block) for block in content)
    return "\n".join(part for part in parts if part)


def block_text(block: Any) -> str:
    """The public text of one block; an unknown block becomes JSON."""
    if isinstance(block, str):
        return block
    kind = block_type(block)
    if kind in TEXT_BLOCKS:
        text = block.get("text")
        return text if isinstance(text, str) else content_text(text)
    if is_image(block):
        return image_note(block)
    if kind in PRIVATE_BLOCKS:
        return ""
    if is_result(block):
        return content_text(result_value(block))
    return saved_json(block)


def own_texts(row: Row) -> tuple[str, ...] | None:
    """The texts that a user row holds beside results and attachments; None where its whole content is such text."""
    if isinstance(row.raw.get("content"), str):
        return None
    return tuple(block_text(block) for block in blocks_of(row.raw) if _is_own(block))


def _is_own(block: Any) -> bool:
    return isinstance(block, str) or (block_type(block) in TEXT_BLOCKS and isinstance(block.get("text"), str))


def result_value(block: Mapping[str, Any]) -> Any:
    """What a result block holds, in either shape."""
    return block["output"] if "output" in block else block.get("content")


def render_parts(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> list[tuple[bool, str]]:
    """The text of a row as the summariser sees it, as (is a tool result, text) parts.

    `names` maps the call ids that this row answers to tool names; a result whose id is not in it is an orphan.
    """
    return list(parts_of(row, names, missing))


def parts_of(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> Iterator[tuple[bool, str]]:
    """The same, one after the other: a row may hold thousands of calls."""
    return (part for part in _parts(row, names, missing) if part[1])


def _parts(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> Iterator[tuple[bool, str]]:
    raw = row.raw
    content = raw.get("content")
    if row.role == "tool":
        orphan = "" if row.result_ids[0] in names else ORPHAN
        yield True, orphan + content_text(content)
        return
    if isinstance(content, list | tuple):
        names = dict(names)
        for block in content:
            if is_result(block) and row.result_ids:
                call_id = result_block_id(block)
                label = f"result of {names.pop(call_id)}: " if call_id in names else ORPHAN
                yield True, label + content_text(result_value(block))
            elif not (row.calls and block_type(block) in CALL_BLOCKS and id_of(block.get("id"))):
                yield False, block_text(block)
    else:
        yield False, content_text(content)
    for call in row.calls:
        yield False, call_line(call.name, saved_json(call.arguments))
    for call in missing:
        yield False, f"[call {call.name}: {NO_RESULT}]"
