"""The texts and images of a row that count as tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from context_summarize.background import Steps, with_pauses
from context_summarize.messages.images import is_image
from context_summarize.messages.json_text import compact_json_steps
from context_summarize.messages.reading import (
    arguments_of,
    block_type,
    blocks_of,
    id_of,
    is_result,
    is_unparsed,
    row_calls,
)
from context_summarize.messages.rows import CALL_BLOCKS, JsonRow
from context_summarize.messages.text import block_steps, content_steps, result_value


def countable_items(raw: JsonRow) -> Iterator[str | Mapping[str, Any]]:
    """Texts and image blocks of a row that a provider charges for; a call that is stored twice appears once.

    Empty texts are pauses while a long one is made.
    """
    content = raw.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for block in content:
            yield from _of_block(block)
    elif content is not None:
        yield from _json(content)
    if raw["role"] == "assistant" and raw.get("tool_calls"):
        in_blocks = Counter(id_of(block.get("id")) for block in blocks_of(raw) if block_type(block) in CALL_BLOCKS)
        for call in row_calls({**raw, "content": None}):
            if in_blocks[call.id]:
                in_blocks[call.id] -= 1
            else:
                yield call.name
                yield from _json(call.arguments)


def _of_block(block: Any) -> Iterator[str | Mapping[str, Any]]:
    kind = block_type(block)
    if is_image(block):
        yield block
    elif kind in CALL_BLOCKS:
        yield str(block.get("name") or "")
        yield from _json(arguments_of(block.get("input")))
    elif kind == "thinking":
        yield from _text(content_steps(block.get("thinking")))
    elif kind == "redacted_thinking":
        yield from _text(content_steps(block.get("data")))
    elif kind == "reasoning":
        yield from _json(block.get("summary") or block.get("content"))
    elif is_result(block):
        value = result_value(block)
        if not isinstance(value, list | tuple):
            yield from _text(content_steps(value))
            return
        yield from (inner for inner in value if is_image(inner))
        yield from _text(content_steps([inner for inner in value if not is_image(inner)]))
    else:
        yield from _text(block_steps(block))


def _json(value: Any) -> Iterator[str]:
    """The value as JSON after pauses; arguments that are too long to be parsed stand as they are."""
    if is_unparsed(value):
        yield value
    else:
        pieces = yield from with_pauses(compact_json_steps(value), "")
        yield "".join(pieces)


def _text(steps: Steps[str]) -> Iterator[str]:
    text = yield from with_pauses(steps, "")
    yield text
