"""`python -m benchmarks.peers`: is every peer installed, and is its adapter without loss? Exit code 1 when not."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import EVERYONE, Contestant
from .check import problems, versions


def main(contestants: Sequence[type[Contestant]] = EVERYONE) -> int:
    """Print a line for each contestant, and the versions when all is well."""
    found = problems(contestants)
    for contestant in contestants:
        print(f"{'FAILED' if contestant.title in found else 'ok':6}  {contestant.title}: ", end="")
        print(found.get(contestant.title) or contestant.settings)
    if not found:
        print(", ".join(f"{name} {version}" for name, version in versions(contestants).items()))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
