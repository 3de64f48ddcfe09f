"""Image blocks in every shape that hosts use, read in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_summarize.messages.reading import block_type

_UNKNOWN_TYPE = "image"


@dataclass(frozen=True, slots=True)
class Image:
    """What an image block holds: the image itself, or the address where it lies, or neither."""

    media_type: str | None = None
    data: str | None = None
    """The image as text: base64 where `encoded`, else what a data URL holds as it is."""
    encoded: bool = False
    url: str | None = None
    """An address that is no data URL."""

    @property
    def is_remote(self) -> bool:
        """True for an address that a provider can fetch."""
        return self.url is not None and self.url.startswith(("http://", "https://"))

    def as_url(self) -> str:
        """The image as one URL: where it lies, or itself as a data URL."""
        if self.is_remote and self.url is not None:
            return self.url
        return f"data:{self.media_type or _UNKNOWN_TYPE}{';base64' * self.encoded},{self.data or ''}"


def is_image(block: Any) -> bool:
    """True for an image block in any of the shapes."""
    return block_type(block) in ("image", "image_url", "input_image")


def read_image(block: Mapping[str, Any]) -> Image:
    """The image of a block. Never raises, never fetches.

    Shapes: `{source: {media_type, data}}`, `{source: {url}}`, `{image_url: {url}}` and `{image_url: "…"}`; each URL may
    be a data URL.
    """
    source = block.get("source")
    holder = source if isinstance(source, dict) else block
    media_type, data = holder.get("media_type"), holder.get("data")
    media_type = media_type if isinstance(media_type, str) and media_type else None
    if isinstance(data, str) and data:
        return Image(media_type, data, encoded=True)
    url = holder.get("url") or holder.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if not isinstance(url, str) or not url:
        return Image(media_type)
    head, comma, body = url.partition(",")
    if not comma or head[:5].lower() != "data:":
        return Image(media_type, url=url)
    declared, *parameters = head[5:].split(";")
    return Image(declared or media_type, body, encoded="base64" in parameters)


def image_note(block: Mapping[str, Any]) -> str:
    """The line that stands for an image in a transcript: its type, and its address or its size."""
    image = read_image(block)
    kind = image.media_type or _UNKNOWN_TYPE
    if image.is_remote:
        return f"[image: {kind}, {image.url}]"
    return f"[image: {kind}, {len(image.data or image.url or '') * 3 // 4:,} bytes]"
