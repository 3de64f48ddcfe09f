"""Writes the tables of configuration.md from the texts of `Config`'s fields: `python docs/make_configuration.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from context_summarize.config import SETTINGS

PAGE = Path(__file__).with_name("configuration.md")


FIRST = ("recall_tool", "summary_provider", "summary_model", "keep_recent", "compact_threshold", "prompts")
"""Settings that people have a reason to look at first, in the order of their table."""


def _settings(names: Iterable[str]) -> list[str]:
    rows = [f"| `{name}: {_shown(SETTINGS[name].default)}` | {SETTINGS[name].description} |" for name in names]
    return ["| default | |", "| --- | --- |", *rows]


def _shown(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    value = list(value) if isinstance(value, tuple) else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def renewed(page: str) -> str:
    """The page with each table, between two comments that name it, written again.

    Raises:
        ValueError: the page lacks one of the comments.
    """
    rare = [name for name in SETTINGS if name not in FIRST]
    tables = {"first settings": _settings(FIRST), "other settings": _settings(rare)}
    for name, rows in tables.items():
        begin, end = f"<!-- {name}: made by make_configuration.py -->", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = "\n".join((f"{before}{begin}", "", *rows, "", f"{end}{after}"))
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
