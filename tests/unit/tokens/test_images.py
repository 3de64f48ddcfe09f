"""The tokens of images, by the size that their header names."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from context_summarize.tokens import images
from context_summarize.tokens.images import image_size, image_tokens


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x06\0\0\0" + b"\0" * 4


def gif(width: int, height: int, version: bytes = b"GIF89a") -> bytes:
    return version + struct.pack("<HH", width, height) + b"\0\0\0"


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body + b"\0" * 10


def vp8(width: int, height: int, start: bytes = b"\x9d\x01\x2a") -> bytes:
    # The two highest bits of each figure are a scaling hint.
    return webp(b"VP8 ", b"\0\0\0" + start + struct.pack("<HH", width | 0x4000, height | 0x8000))


def vp8l(width: int, height: int, signature: int = 0x2F) -> bytes:
    return webp(b"VP8L", bytes([signature]) + struct.pack("<I", (width - 1) | (height - 1) << 14 | 1 << 28))


def vp8x(width: int, height: int) -> bytes:
    return webp(b"VP8X", b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"))


def jpeg(width: int, height: int, *before: bytes, marker: int = 0xC0) -> bytes:
    frame = bytes([0xFF, marker]) + struct.pack(">HBHH", 17, 8, height, width) + b"\x03" + b"\0" * 9
    return b"\xff\xd8" + b"".join(before) + frame


def segment(marker: int, size: int) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", size + 2) + b"\0" * size


def block(data: bytes | str) -> dict[str, Any]:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/wrong", "data": text}}


READABLE = [
    png(640, 480),
    gif(640, 480),
    gif(640, 480, b"GIF87a"),
    vp8(640, 480),
    vp8l(640, 480),
    vp8x(640, 480),
    jpeg(640, 480),
    jpeg(640, 480, segment(0xE0, 14), segment(0xC4, 30), b"\xff", marker=0xC2),
    jpeg(640, 480, *[segment(0xE1, 60_000)] * 8),
]

UNREADABLE = [
    b"",
    b"no image at all, but long enough for every header",
    png(640, 480)[:22],
    png(0, 480),
    png(640, 480).replace(b"IHDR", b"IDAT"),
    gif(640, 0),
    gif(640, 480)[:9],
    vp8(640, 480, start=b"abc"),
    vp8l(640, 480, signature=0),
    webp(b"ALPH", b"\0" * 20),
    jpeg(0, 480),
    jpeg(640, 480)[:8],
    jpeg(640, 480, b"\0\0"),
    jpeg(640, 480, segment(0xDA, 10)),
    "iVBORw0KGgo*",
    "ünreadable",
]


class TestImages:
    @pytest.mark.parametrize("data", READABLE)
    def test_the_size_is_read_from_the_header(self, data: bytes) -> None:
        """png, gif, jpeg and the three kinds of webp, whatever type the block declares."""
        assert image_size(block(data)) == (640, 480)
        assert image_tokens(block(data)) == 410  # 640 * 480 / 750 = 409.6

    @pytest.mark.parametrize("data", UNREADABLE)
    def test_malformed_data_count_as_unknown(self, data: bytes | str) -> None:
        """Nothing raises."""
        assert image_size(block(data)) is None
        assert image_tokens(block(data)) == images.UNKNOWN_IMAGE_TOKENS == 1600

    @pytest.mark.parametrize(
        ("size", "expected"),
        [((1, 1), 1), ((30, 25), 1), ((1568, 750), 1568), ((3136, 1500), 1568), ((1500, 3136), 1568), ((1, 10**9), 1)],
    )
    def test_large_images_are_scaled_down_first(self, size: tuple[int, int], expected: int) -> None:
        """Pixels / 750, rounded up, with the long side at most 1568; never less than one token."""
        assert image_tokens(block(png(*size))) == expected

    def test_the_length_of_the_base64_does_not_matter(self) -> None:
        """A header in front of a megabyte counts as the header alone."""
        assert image_tokens(block(png(640, 480) + b"\1" * 1_000_000)) == 410

    def test_wrapped_base64_is_read(self) -> None:
        """Some tools break base64 into lines."""
        assert image_tokens(block(base64.encodebytes(jpeg(640, 480, segment(0xE0, 500))).decode())) == 410
