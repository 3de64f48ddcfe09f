"""Prints a pip constraints file: every runtime dependency at the lowest version that pyproject.toml allows."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = "dev"
"""The extra of development tools: their versions are nobody's at run time."""
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*(?P<lowest>[0-9][0-9A-Za-z.]*)(?:\s*,.*)?")


def constraints(project: dict[str, Any]) -> Iterator[str]:
    """`name==version` for each runtime dependency, those of extras included.

    Args:
        project: the table `[project]` of pyproject.toml.

    Raises:
        ValueError: a requirement has no lower bound.
    """
    extras = project.get("optional-dependencies", {})
    runtime = [*project["dependencies"], *(line for name, lines in extras.items() if name != TOOLS for line in lines)]
    for requirement in runtime:
        found = _REQUIREMENT.fullmatch(requirement.strip())
        if found is None:
            raise ValueError(f"{requirement!r} has no lower bound; expected one such as 'name>=1.2'")
        yield f"{found['name']}=={found['lowest']}"


def main() -> None:
    """Print the constraints of this project."""
    sys.stdout.writelines(f"{line}\n" for line in constraints(tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]))


if __name__ == "__main__":
    main()
