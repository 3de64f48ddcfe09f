"""The texts and images of a row that count as tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_summarize.messages.images import is_image
from context_summarize.messages.reading import arguments_of, block_type, blocks_of, id_of, is_result, row_calls
from context_summarize.messages.rows import CALL_BLOCKS, JsonRow
from context_summarize.messages.text import block_text, compact_json, content_text, result_value


def countable(raw: JsonRow) -> tuple[list[str], list[Mapping[str, Any]]]:
    """(texts, image blocks) of a row that a provider charges for; a call that is stored twice appears once."""
    texts: list[str] = []
    images: list[Mapping[str, Any]] = []
    content = raw.get("content")
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, list | tuple):
        for block in content:
            _countable_block(block, texts, images)
    elif content is not None:
        texts.append(compact_json(content))
    if raw["role"] == "assistant" and raw.get("tool_calls"):
        in_blocks = [id_of(b.get("id")) for b in blocks_of(raw) if block_type(b) in CALL_BLOCKS]
        for call in row_calls({**raw, "content": None}):
            if call.id in in_blocks:
                in_blocks.remove(call.id)
            else:
                texts.extend((call.name, compact_json(call.arguments)))
    return texts, images


def _countable_block(block: Any, texts: list[str], images: list[Mapping[str, Any]]) -> None:
    kind = block_type(block)
    if is_image(block):
        images.append(block)
    elif kind in CALL_BLOCKS:
        texts.extend((str(block.get("name") or ""), compact_json(arguments_of(block.get("input")))))
    elif kind == "thinking":
        texts.append(content_text(block.get("thinking")))
    elif kind == "redacted_thinking":
        texts.append(content_text(block.get("data")))
    elif kind == "reasoning":
        texts.append(compact_json(block.get("summary") or block.get("content")))
    elif is_result(block):
        value = result_value(block)
        images.extend(b for b in value if is_image(b)) if isinstance(value, list | tuple) else None
        texts.append(content_text([b for b in value if not is_image(b)] if isinstance(value, list | tuple) else value))
    else:
        texts.append(block_text(block))
