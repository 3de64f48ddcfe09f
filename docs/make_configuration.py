"""Writes the tables of configuration.md from the texts of `Config`'s fields: `python docs/make_configuration.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from context_summarize.config import PROFILES, SETTINGS, Config

PAGE = Path(__file__).with_name("configuration.md")


FIRST = ("recall_tool", "summary_provider", "summary_model", "keep_recent", "compact_threshold", "prompts")
"""Settings that people have a reason to look at first, in the order of their table."""


def _settings(names: Iterable[str]) -> list[str]:
    rows = [f"| `{name}` | {_shown(SETTINGS[name].default)} | {SETTINGS[name].description} |" for name in names]
    return ["| key | default | |", "| --- | --- | --- |", *rows]


def _profiles() -> list[str]:
    """A line for each setting in which a profile differs from the defaults."""
    made = [Config(profile=profile) for profile in PROFILES]
    names = [name for name in SETTINGS if any(name in profile for profile in PROFILES.values())]
    rows = [["key", *(f"`{profile}`" for profile in PROFILES)], ["---"] * (len(PROFILES) + 1)]
    rows += [[f"`{name}`", *(_shown(getattr(config, name)) for config in made)] for name in names]
    return [f"| {' | '.join(row)} |" for row in rows]


def _shown(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "`null`"
    value = list(value) if isinstance(value, tuple) else value
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def renewed(page: str) -> str:
    """The page with each table, between two comments that name it, written again.

    Raises:
        ValueError: the page lacks one of the comments.
    """
    rare = [name for name in SETTINGS if name not in FIRST]
    tables = {"first settings": _settings(FIRST), "other settings": _settings(rare), "profiles": _profiles()}
    for name, rows in tables.items():
        begin, end = f"<!-- {name}: made by make_configuration.py -->", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = "\n".join((f"{before}{begin}", "", *rows, "", f"{end}{after}"))
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
