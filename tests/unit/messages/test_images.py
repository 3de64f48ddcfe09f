"""Image blocks of every shape: one reader, and what the transcript, a view and a provider make of it."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from context_summarize.messages.images import base64_of, image_note, image_url, is_image
from context_summarize.messages.reading import analyse
from context_summarize.messages.view_rows import view_row

PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x06\0\0\0" + b"\0" * 4
).decode()
DATA_URL = f"data:image/png;base64,{PNG}"
ADDRESS = "https://example.org/a.png"
INSIDE: dict[str, dict[str, Any]] = {
    "a base64 source": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    "a source without a type": {"type": "image", "source": {"media_type": "image/png", "data": PNG}},
    "a data URL in a source": {"type": "image", "source": {"type": "url", "url": DATA_URL}},
    "a data URL in a mapping": {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "high"}},
    "a data URL as text": {"type": "image_url", "image_url": DATA_URL},
    "an input image": {"type": "input_image", "image_url": DATA_URL},
    "a data URL in capitals": {"type": "input_image", "image_url": f"DATA:image/png;base64,{PNG}"},
    "a data URL with parameters": {"type": "image_url", "image_url": f"data:image/png;name=a.png;base64,{PNG}"},
    "data in the block": {"type": "image", "media_type": "image/png", "data": PNG},
}
OUTSIDE: dict[str, dict[str, Any]] = {
    "an address in a source": {"type": "image", "source": {"type": "url", "url": ADDRESS}},
    "an address in a mapping": {"type": "image_url", "image_url": {"url": ADDRESS}},
    "an address as text": {"type": "image_url", "image_url": ADDRESS},
    "an address in an input image": {"type": "input_image", "image_url": ADDRESS},
}
UNREADABLE: list[tuple[dict[str, Any], str]] = [
    ({"type": "image"}, ""),
    ({"type": "image", "source": None}, ""),
    ({"type": "image", "source": {}}, ""),
    ({"type": "image", "source": {"type": "base64", "media_type": 7, "data": b"bytes"}}, ""),
    ({"type": "image", "source": {"type": "file", "media_type": "image/gif"}}, ""),
    ({"type": "image_url", "image_url": 5}, ""),
    ({"type": "image_url", "image_url": {"url": None}}, ""),
    ({"type": "image_url", "image_url": "data:"}, "data:"),
    ({"type": "image_url", "image_url": "file:///a.png"}, "file:///a.png"),
    ({"type": "image_url", "image_url": "data:image/svg+xml,<svg/>"}, "data:image/svg+xml,<svg/>"),
]


@pytest.mark.parametrize("block", INSIDE.values(), ids=INSIDE.keys())
def test_an_image_in_a_block_is_the_same_in_every_shape(block: dict[str, Any]) -> None:
    """Its note names type and size, and as a URL it is itself."""
    assert is_image(block)
    assert base64_of(image_url(block)) == ("image/png", PNG)
    assert image_note(block) == "[image: image/png, 33 bytes]"


@pytest.mark.parametrize("block", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_an_image_at_an_address_is_the_same_in_every_shape(block: dict[str, Any]) -> None:
    """Nothing is fetched."""
    assert is_image(block)
    assert image_url(block) == ADDRESS
    assert image_note(block) == f"[image: {ADDRESS}]"


@pytest.mark.parametrize(("block", "url"), UNREADABLE)
def test_a_block_without_a_picture_is_no_error(block: dict[str, Any], url: str) -> None:
    """Its note says what there is."""
    assert image_url(block) == url
    assert base64_of(url) is None
    assert image_note(block) == f"[image: image, {len(url) * 3 // 4} bytes]"


@pytest.mark.parametrize("block", [*INSIDE.values(), *OUTSIDE.values(), *(block for block, _ in UNREADABLE)])
def test_a_view_shows_the_same_image(block: dict[str, Any]) -> None:
    """Where the host knows no such shape, the image is moved to one that it knows; the rest becomes a note."""
    row = view_row(analyse({"role": "user", "content": [block]}))
    assert row is not None
    [shown] = row["content"]
    if shown["type"] == "text":
        assert base64_of(image_url(block)) is None
        assert shown["text"] == image_note(block)
    else:
        assert shown["type"] == "image"
        assert (base64_of(image_url(shown)) or image_url(shown)) == (base64_of(image_url(block)) or image_url(block))
