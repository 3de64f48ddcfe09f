"""The pages of the documentation, and what can be read out of them: blocks, commands, tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def named(page: Path) -> str:
    """A page as readers of a report know it."""
    return str(page.relative_to(ROOT))


def blocks(language: str) -> list[tuple[Path, str]]:
    """Page and text of every fenced block in one language."""
    block = re.compile(rf"^( *)```{language}\n(.*?)^\1```$", re.S | re.M)
    return [(page, textwrap.dedent(text)) for page in PAGES for _, text in block.findall(page.read_text("utf-8"))]


def commands(page: Path) -> list[str]:
    """Every line of the page's `sh` blocks, in order, comments aside."""
    text = "".join(text for where, text in blocks("sh") if where == page)
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
