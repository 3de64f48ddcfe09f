"""Tokens of images, by their size."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

from context_summarize.messages.images import read_image

# Anthropic's published rule, without its cap on one image's tokens (some 1,600; newer models allow more).
IMAGE_LONG_SIDE = 1568  # pixels; larger images are scaled down to this
PIXELS_PER_TOKEN = 750
UNKNOWN_IMAGE_TOKENS = 1600  # for an image whose size is unknown


def image_tokens(block: Mapping[str, Any]) -> int:
    """Tokens of an image block by Anthropic's published rule; `UNKNOWN_IMAGE_TOKENS` when its size is not known."""
    size = image_size(block)
    if size is None:
        return UNKNOWN_IMAGE_TOKENS
    width, height = size
    long_side = max(size)
    shown = min(long_side, IMAGE_LONG_SIDE)
    return -(-width * height * shown**2 // (PIXELS_PER_TOKEN * long_side**2))


def image_size(block: Mapping[str, Any]) -> tuple[int, int] | None:
    """(width, height) in pixels of the image that a block holds; None where it holds none that can be read."""
    image = read_image(block)
    return _size(image.data) if image.encoded and image.data else None


def _size(data: str) -> tuple[int, int] | None:
    """Width and height from as much of the base64 as is needed: 48 bytes, more for a jpeg only."""
    for chars in (64, 4096, 262_144, len(data)):
        text = "".join(data[:chars].split())
        try:
            head = base64.b64decode(text[: len(text) // 4 * 4], validate=True)
        except ValueError:
            return None
        is_jpeg = head.startswith(b"\xff\xd8")
        found = _jpeg(head) if is_jpeg else _header(head)
        if found or not is_jpeg:
            return found if found and found[0] * found[1] > 0 else None
    return None


def _header(head: bytes) -> tuple[int, int] | None:
    """gif, png, and the three kinds of webp (RFC 9649): lossy `VP8 `, lossless `VP8L`, extended `VP8X`."""
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return _pair("<HH", head[6:10])
    if len(head) < 30:
        return None
    if head[:8] == b"\x89PNG\r\n\x1a\n" and head[12:16] == b"IHDR":
        return _pair(">II", head[16:24])
    kind = head[8:16] if head[:4] == b"RIFF" else b""
    if kind == b"WEBPVP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"WEBPVP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"WEBPVP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = _pair("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """Walks the segments up to the frame header (SOF0 to SOF15; C4, C8 and CC in that range are none)."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF and (marker := head[at + 1]) != 0xDA:
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = _pair(">HH", head[at + 5 : at + 9])
            return width, height
        at += 1 if marker == 0xFF else 2 + int.from_bytes(head[at + 2 : at + 4], "big")  # a second FF is filling
    return None


def _pair(layout: str, data: bytes) -> tuple[int, int]:
    first, second = struct.unpack(layout, data)
    return first, second
