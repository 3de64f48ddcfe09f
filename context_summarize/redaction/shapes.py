"""The room's tables, and their patterns compiled."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

Patterns = dict[str, re.Pattern[str]]


def read(name: str) -> dict[str, Any]:
    """Returns a table of `data/`."""
    return tomllib.loads((resources.files("context_summarize.redaction") / f"data/{name}.toml").read_text("utf-8"))


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """Returns the pattern on one line, with the parts that it names in angle brackets."""
    lines = "".join(map(str.lstrip, pattern.split("\n")))
    return re.sub("<([A-Z0-9_]+)>", lambda found: parts[found[1]], lines)


def parts_of(table: Mapping[str, str]) -> dict[str, str]:
    """Returns the parts of patterns; each may name those above it."""
    parts: dict[str, str] = {}
    for name, part in table.items():
        parts[name] = filled(part, parts)
    return parts


_TABLES = read("shapes")
PARTS = parts_of(_TABLES["parts"])


def shapes(place: str) -> Patterns:
    """Returns the patterns that a file matches where it stands (`FILE.at`), or looks for (`FILE.in`)."""
    file, way = place.split(".")
    return {name: re.compile(filled(text, PARTS)) for name, text in _TABLES[file][way].items()}
