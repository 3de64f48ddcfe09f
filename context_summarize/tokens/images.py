"""Tokens of images, by their size."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Anthropic's published rule, without its cap on one image's tokens (some 1,600; newer models allow more).
IMAGE_LONG_SIDE = 1568  # pixels; larger images are scaled down to this
PIXELS_PER_TOKEN = 750
UNKNOWN_IMAGE_TOKENS = 1600  # for an image whose size cannot be told


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What an image block tells of its image; None where it does not."""

    media_type: str | None = None
    width: int | None = None  # pixels; known together with height, or neither is
    height: int | None = None
    size_bytes: int | None = None  # from the length of the base64


def image_tokens(block: Mapping[str, Any]) -> int:
    """Tokens of an image block by Anthropic's published rule; `UNKNOWN_IMAGE_TOKENS` when its size is not known."""
    info = image_info(block)
    if info.width is None or info.height is None:
        return UNKNOWN_IMAGE_TOKENS
    long_side = max(info.width, info.height)
    shown = min(long_side, IMAGE_LONG_SIDE)
    return -(-info.width * info.height * shown**2 // (PIXELS_PER_TOKEN * long_side**2))


def image_info(block: Mapping[str, Any]) -> ImageInfo:
    """Type and size of an `image` (base64 or url source) or `image_url` block; never raises, never fetches."""
    declared, data = _image_data(block)
    if data is None:
        return ImageInfo(declared)
    size_bytes = len(data) * 3 // 4 - data[-2:].count("=")
    found = _measure(data)
    return ImageInfo(declared, None, None, size_bytes) if found is None else ImageInfo(*found, size_bytes)


def _image_data(block: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Declared media type and base64 text of a block."""
    source = block.get("source")
    holder = source if isinstance(source, Mapping) else block
    kind, data, url = holder.get("media_type"), holder.get("data"), holder.get("url", holder.get("image_url"))
    kind = kind if isinstance(kind, str) else None
    if isinstance(data, str):
        return kind, data.strip()
    url = url.get("url") if isinstance(url, Mapping) else url
    if not isinstance(url, str) or url[:5].lower() != "data:":
        return kind, None
    head, _, body = url[5:].partition(",")
    declared, *parameters = head.split(";")
    return declared or None, body.strip() if "base64" in parameters else None


def _measure(data: str) -> tuple[str, int, int] | None:
    """Media type, width, height from as much of the base64 as is needed: 48 bytes, more for a jpeg only."""
    for chars in (64, 4096, 262_144, len(data)):
        text = "".join(data[:chars].split())
        try:
            head = base64.b64decode(text[: len(text) // 4 * 4], validate=True)
        except ValueError:
            return None
        is_jpeg = head.startswith(b"\xff\xd8")
        found = _jpeg(head) if is_jpeg else _header(head)
        if found or not is_jpeg:
            return found if found and found[1] * found[2] > 0 else None
    return None


def _header(head: bytes) -> tuple[str, int, int] | None:
    """gif, png, and the three kinds of webp (RFC 9649): lossy `VP8 `, lossless `VP8L`, extended `VP8X`."""
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return "image/gif", *struct.unpack("<HH", head[6:10])
    if len(head) < 30:
        return None
    if head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR":
        return "image/png", *struct.unpack(">II", head[16:24])
    kind = head[8:16] if head[:4] == b"RIFF" else b""
    if kind == b"WEBPVP8X":
        return "image/webp", int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"WEBPVP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return "image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"WEBPVP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", head[26:30])
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> tuple[str, int, int] | None:
    """Walks the segments up to the frame header (SOF0 to SOF15; C4, C8 and CC in that range are none)."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF and (marker := head[at + 1]) != 0xDA:
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return "image/jpeg", *reversed(struct.unpack(">HH", head[at + 5 : at + 9]))
        at += 1 if marker == 0xFF else 2 + int.from_bytes(head[at + 2 : at + 4], "big")  # a second FF is filling
    return None
