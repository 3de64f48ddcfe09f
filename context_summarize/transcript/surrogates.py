"""Lone surrogates, which no encoder of JSON for the network takes."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
