"""The pages of the documentation, and what can be read out of them: blocks, commands, tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: Path
    language: str
    text: str


def named(page: Path) -> str:
    """A page as readers of a report know it."""
    return str(page.relative_to(ROOT))


def blocks(language: str) -> list[Block]:
    """All blocks in one language."""
    found = (
        Block(page, found, textwrap.dedent(text))
        for page in PAGES
        for _, found, text in re.findall(r"^( *)```(\w+)\n(.*?)^\1```$", page.read_text("utf-8"), re.S | re.M)
    )
    return [block for block in found if block.language == language]


def commands(page: Path) -> list[str]:
    """Every line of the page's `sh` blocks, in order, comments aside."""
    text = "".join(block.text for block in blocks("sh") if block.page == page)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)


def table(text: str) -> Iterator[list[str]]:
    """The cells of every row of the tables in a text."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]
