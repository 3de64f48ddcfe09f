"""Image blocks in every shape that hosts use, read in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_summarize.messages.reading import block_type


def is_image(block: Any) -> bool:
    """True for an image block in any of the shapes."""
    return block_type(block) in ("image", "image_url", "input_image")


def image_url(block: Mapping[str, Any]) -> str:
    """The image of a block as one URL: where it lies, or itself as a data URL; "" where there is none. Never raises.

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


def is_remote(url: str) -> bool:
    """True for an address that a provider can fetch."""
    return url.startswith(("http://", "https://"))


def base64_of(url: str) -> tuple[str, str] | None:
    """(media type, base64) of a data URL; None for any other, and for one that holds none."""
    head, _, body = url.partition(",")
    kind, *parameters = head[5:].split(";")
    return (kind or "image", body) if body and head[:5].lower() == "data:" and "base64" in parameters else None


def image_note(block: Mapping[str, Any]) -> str:
    """The line that stands for an image in a transcript: its address, or its type and size."""
    url = image_url(block)
    if is_remote(url):
        return f"[image: {url}]"
    media_type, data = base64_of(url) or ("image", url)
    return f"[image: {media_type}, {len(data) * 3 // 4:,} bytes]"
