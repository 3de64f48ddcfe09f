"""Builds markup from elements, so that no text of a recording is ever read as markup."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

_ILLEGIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def element(tag: str, *children: Element | str, **attributes: str) -> Element:
    """An element; texts are escaped when it is written. `class_` gives `class`, `stroke_width` gives `stroke-width`."""
    made = Element(tag, {name.rstrip("_").replace("_", "-"): _legible(text) for name, text in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + _legible(child)
        else:
            made.text = (made.text or "") + _legible(child)
    return made


def _legible(text: str) -> str:
    """The text without what no document may hold: control characters and lone surrogates."""
    return _ILLEGIBLE.sub("\ufffd", text)
