"""The public text of rows and blocks: as the summariser reads it, and as it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_summarize.messages.images import image_note, is_image
from context_summarize.messages.json_text import compact_json, saved_json
from context_summarize.messages.reading import block_type, blocks_of, is_call, is_result, result_block_id, row_calls
from context_summarize.messages.rows import NO_RESULT, PRIVATE_BLOCKS, TEXT_BLOCKS, Call, JsonRow, Row
from context_summarize.transcript.calls import ORPHAN, call_line


def content_text(content: Any) -> str:
    """The public text of a content value: a string, blocks, or data. Thinking is left out, images become a note."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return saved_json(content)
    return "\n".join(filter(None, map(block_text, content)))


def block_text(block: Any) -> str:
    """The public text of one block; an unknown block becomes JSON."""
    kind = block_type(block)
    if isinstance(block, str):
        return block
    if kind in TEXT_BLOCKS:
        return content_text(block.get("text"))
    if is_image(block):
        return image_note(block)
    if kind in PRIVATE_BLOCKS:
        return ""
    return content_text(result_value(block)) if is_result(block) else saved_json(block)


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
    """The text of a row as the summariser sees it, as (is a tool result, text) parts, none of them empty.

    `names` maps the call ids that this row answers to tool names; a result whose id is not in it is an orphan.
    """
    return [part for part in _parts(row, names, missing) if part[1]]


def _parts(row: Row, names: Mapping[str, str], missing: Sequence[Call]) -> Iterator[tuple[bool, str]]:
    content = row.raw.get("content")
    if row.role == "tool":
        yield True, ("" if row.result_ids[0] in names else ORPHAN) + content_text(content)
        return
    if isinstance(content, list | tuple):
        yield from _block_parts(row, content, dict(names))
    else:
        yield False, content_text(content)
    for call in row.calls:
        yield False, call_line(call.name, saved_json(call.arguments))
    for call in missing:
        yield False, f"[call {call.name}: {NO_RESULT}]"


def _block_parts(row: Row, content: Sequence[Any], names: dict[str, str]) -> Iterator[tuple[bool, str]]:
    """Parts of the blocks of a row, calls aside."""
    for block in content:
        if is_result(block) and row.result_ids:
            call_id = result_block_id(block)
            label = f"result of {names.pop(call_id)}: " if call_id in names else ORPHAN
            yield True, label + content_text(result_value(block))
        elif not (row.calls and is_call(block)):
            yield False, block_text(block)


def countable_items(raw: JsonRow) -> Iterator[str | Mapping[str, Any]]:
    """Texts and image blocks of a row that a provider charges for; a call that is stored twice appears once."""
    content, calls = raw.get("content"), raw["role"] == "assistant"
    if isinstance(content, list | tuple):
        for block in content:
            if not (calls and is_call(block)):
                yield from _countable(block)
    else:
        yield content_text(content)
    for call in row_calls(raw) if calls else ():
        yield call.name
        yield compact_json(call.arguments)


def _countable(block: Any) -> Iterator[str | Mapping[str, Any]]:
    kind = block_type(block)
    if is_image(block):
        yield block
    elif kind in PRIVATE_BLOCKS:
        said = [block.get(key) for key in ("thinking", "data", "summary") if block.get(key)]
        yield content_text(said[0] if said else block.get("content"))
    elif is_result(block) and isinstance(value := result_value(block), list | tuple):
        for inner in value:
            yield inner if is_image(inner) else block_text(inner)
    else:
        yield block_text(block)
