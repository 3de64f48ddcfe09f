"""Writes the tables of configuration.md from the texts of `Config`'s fields: `python docs/make_configuration.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from context_summarize.config import PROFILES, SETTINGS, Config

PAGE = Path(__file__).with_name("configuration.md")


def _settings() -> list[str]:
    rows = [
        f"| `{name}` | {_shown(item.default)} | {_cell(item.description or '')} |" for name, item in SETTINGS.items()
    ]
    return ["| key | default | |", "| --- | --- | --- |", *rows]


def _profiles() -> list[str]:
    """A line for each setting in which a profile differs from the defaults."""
    names = [name for name in SETTINGS if any(name in profile for profile in PROFILES.values())]
    made = {profile: Config(profile=profile) for profile in PROFILES}
    rows = [
        f"| `{name}` | {' | '.join(_shown(getattr(made[profile], name)) for profile in PROFILES)} |" for name in names
    ]
    return [
        f"| key | {' | '.join(f'`{profile}`' for profile in PROFILES)} |",
        "| --- |" + " --- |" * len(PROFILES),
        *rows,
    ]


def _shown(value: Any) -> str:
    """A default as YAML has it."""
    if value is None or isinstance(value, bool):
        return f"`{str(value).lower().replace('none', 'null')}`"
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


TABLES: dict[str, Callable[[], list[str]]] = {
    "settings": _settings,
    "profiles": _profiles,
}


def renewed(page: str) -> str:
    """The page with each table, between two comments that name it, written again.

    Raises:
        ValueError: the page lacks one of the comments.
    """
    for name, rows in TABLES.items():
        begin, end = f"<!-- {name}: made by make_configuration.py -->", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = "\n".join((f"{before}{begin}", "", *rows(), "", f"{end}{after}"))
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
