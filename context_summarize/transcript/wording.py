"""A number with its noun, for all that people or models read."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 row`, `1,200 rows`; `many` is the plural where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
