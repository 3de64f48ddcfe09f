"""One exact value that prose tends to lose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FactKind: TypeAlias = Literal["user", "path", "url", "id", "amount", "command", "error"]


@dataclass(frozen=True, slots=True)
class Fact:
    """An exact value that prose tends to lose."""

    kind: FactKind
    value: str
    count: int = 1
    """How often it occurs in its source rows."""
    said: bool = False
    """True if the prose of a summary has held it: a model chose to write it down."""
