"""Image blocks of every shape: what they hold, and what the transcript and a view make of it."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.messages.reading import analyse
from context_summarize.messages.text import image_note, image_url, is_image
from context_summarize.messages.view_rows import view_row
from tests.unit.messages.shapes import PNG

DATA_URL = f"data:image/png;base64,{PNG}"
ADDRESS = "https://example.org/a.png"
BLOCKS: list[tuple[dict[str, Any], str]] = [
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, DATA_URL),
    ({"type": "image", "source": {"type": "url", "url": DATA_URL}}, DATA_URL),
    ({"type": "image_url", "image_url": {"url": DATA_URL, "detail": "high"}}, DATA_URL),
    ({"type": "input_image", "image_url": DATA_URL}, DATA_URL),
    ({"type": "image", "source": {"type": "url", "url": ADDRESS}}, ADDRESS),
    ({"type": "input_image", "image_url": ADDRESS}, ADDRESS),
    ({"type": "image"}, ""),
    ({"type": "image", "source": {"type": "base64", "media_type": 7, "data": b"bytes"}}, ""),
    ({"type": "image_url", "image_url": 5}, ""),
    ({"type": "image_url", "image_url": "data:image/svg+xml,<svg/>"}, "data:image/svg+xml,<svg/>"),
]
NOTES = {DATA_URL: "[image: image/png, 9 bytes]", ADDRESS: f"[image: {ADDRESS}]"}


@pytest.mark.parametrize(("block", "url"), BLOCKS)
def test_an_image_is_the_same_in_every_shape(block: dict[str, Any], url: str) -> None:
    """As a URL, in a transcript, and in a view, which says what there is where the host knows no such image."""
    assert is_image(block)
    assert image_url(block) == url
    note = NOTES.get(url, f"[image: image, {len(url) * 3 // 4} bytes]")
    assert image_note(block) == note
    row = view_row(analyse({"role": "user", "content": [block]}))
    assert row is not None
    [shown] = row["content"]
    if url in NOTES or isinstance(block.get("source"), dict):
        assert shown["type"] == "image"
        assert image_url(shown) == url
    else:
        assert shown == {"type": "text", "text": note}
