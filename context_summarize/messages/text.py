"""The public text of rows and blocks, for the summariser and for counting; and images in every shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_summarize.messages.reading import block_type, blocks_of, is_call, is_result, result_value, row_calls
from context_summarize.messages.rows import PRIVATE_BLOCKS, TEXT_BLOCKS, JsonRow, Row, compact_json, saved_json

_DATA = re.compile(r"(?:data:[\w.+/-]{0,100};base64,)?[A-Za-z0-9+/_-]{256,}={0,2}")
"""A file in a block that is no image, such as a document or audio. Readable text has a blank earlier."""


def call_line(name: str, *arguments: str) -> str:
    """Returns the line of a call; `arguments` is JSON, perhaps in pieces."""
    return "".join(("call ", name, "(", *arguments, ")"))


def content_text(content: Any) -> str:
    """Returns the public text of a content value: a string, blocks, or data. Without thinking; images become a note."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return saved_json(content)
    return "\n".join(filter(None, map(block_text, content)))


def block_text(block: Any) -> str:
    """Returns the public text of one block; an unknown block becomes JSON, with the size of a file in its place."""
    kind = block_type(block)
    if isinstance(block, str):
        return block
    if kind in TEXT_BLOCKS:
        return content_text(block.get("text"))
    if is_image(block):
        return image_note(block)
    if kind in PRIVATE_BLOCKS:
        return ""
    return content_text(result_value(block)) if is_result(block) else saved_json(_without_data(block))


def _without_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_data(item) for item in value]
    is_data = isinstance(value, str) and _DATA.fullmatch(value)
    return f"[{len(value) * 3 // 4:,} bytes]" if is_data else value


def prose(row: Row) -> str:
    """Returns the text of a row without its calls."""
    texts = (block_text(block) for block in blocks_or_text(row.raw) if not (row.calls and is_call(block)))
    return "\n".join(filter(None, texts))


def is_text(block: Any) -> bool:
    """Returns True for a block that is text."""
    return isinstance(block, str) or (block_type(block) in TEXT_BLOCKS and isinstance(block.get("text"), str))


def blocks_or_text(raw: JsonRow) -> Sequence[Any]:
    """Returns the blocks of a row's content; if that is no list, its text alone."""
    return blocks_of(raw) if isinstance(raw.get("content"), list | tuple) else [content_text(raw.get("content"))]


def countable_items(raw: JsonRow) -> Iterator[str | Mapping[str, Any]]:
    """Yields the texts and image blocks of a row that a provider charges for, and each call once."""
    calls = raw["role"] == "assistant"
    for block in blocks_or_text(raw):
        if not (calls and is_call(block)):
            yield from _countable(block)
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


def is_image(block: Any) -> bool:
    """Returns True for an image block in any of the shapes."""
    return block_type(block) in ("image", "image_url", "input_image")


def image_url(block: Mapping[str, Any]) -> str:
    """Returns the image of a block as one URL: its address, or a data URL; "" if there is none. Never raises.

    Shapes: `{source: {media_type, data}}`, `{source: {url}}`, `{image_url: {url}}` and `{image_url: "…"}`; each URL may
    be a data URL.
    """
    source = block.get("source")
    holder = source if isinstance(source, dict) else block
    media_type, data = holder.get("media_type"), holder.get("data")
    if isinstance(data, str) and data:
        return f"data:{media_type if isinstance(media_type, str) and media_type else 'image'};base64,{data}"
    url = holder.get("url") or holder.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    return url if isinstance(url, str) else ""


def image_source(block: Mapping[str, Any]) -> JsonRow | None:
    """Returns the image of a block in the host's form: an address that a provider can fetch, or base64; else None."""
    url = image_url(block)
    if url.startswith(("http://", "https://")):
        return {"type": "url", "url": url}
    head, _, body = url.partition(",")
    kind, *parameters = head[5:].split(";")
    if body and head[:5].lower() == "data:" and "base64" in parameters:
        return {"type": "base64", "media_type": kind or "image", "data": body}
    return None


def image_note(block: Mapping[str, Any]) -> str:
    """Returns the line for an image in a transcript: its address, or its type and size."""
    source = image_source(block) or {"media_type": "image", "data": image_url(block)}
    if "url" in source:
        return f"[image: {source['url']}]"
    return f"[image: {source['media_type']}, {len(source['data']) * 3 // 4:,} bytes]"
