"""One exact value that prose tends to lose, with the words that say what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FactKind: TypeAlias = Literal["user", "path", "url", "id", "amount", "command", "error", "note"]
"""A `note` is a few words of one sentence with the values among them; its value is the note."""


@dataclass(frozen=True, slots=True)
class Fact:
    """An exact value that prose tends to lose."""

    kind: FactKind
    value: str
    count: int = 1
    """How often it occurs in its source rows."""
    said: bool = False
    """True if the prose of a summary has held it: a model chose to write it down."""
    about: str = ""
    """What it belongs to: the identity of its row (`reservation 4WQ150`), or a few words that hold it; else ""."""
    label: str = ""
    """Name of its key within that row; ""  if `about` holds the value."""
    was: str = ""
    """The earlier value of the same thing."""
    told: bool = False
    """True if the user has said it."""
