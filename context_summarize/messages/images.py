"""Image blocks in every shape that hosts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_summarize.messages.reading import block_type


def image_source(block: Mapping[str, Any]) -> tuple[str, str]:
    """(media type, base64 data or URL) of an image block in any shape."""
    source = block.get("source")
    if isinstance(source, dict):
        kind = str(source.get("media_type") or "image")
        return kind, str(source.get("data") or source.get("url") or "")
    given = block.get("image_url")
    url = given.get("url") if isinstance(given, dict) else given
    url = url if isinstance(url, str) else ""
    if url.startswith("data:") and "," in url:
        head, _, data = url.partition(",")
        return head[5:].partition(";")[0] or "image", data
    return "image", url


def image_note(block: Mapping[str, Any]) -> str:
    kind, data = image_source(block)
    if data.startswith(("http://", "https://")):
        return f"[image: {kind}, {data}]"
    return f"[image: {kind}, {len(data) * 3 // 4:,} bytes]"


def is_image(block: Any) -> bool:
    """True for an image block in any of the shapes."""
    return block_type(block) in ("image", "image_url", "input_image")
