"""Plays the recorded session and prints which lines differ from tests/data/recorded.txt; `--write` records it anew."""

import difflib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # plays this tree, not an installed package

from tests.support.recorded import FILE, taped


def main() -> int:
    """Compares the lines, or writes them; returns 1 if any differs."""
    known = FILE.read_text("utf-8").splitlines() if FILE.exists() else []
    lines = taped()
    changed = [*difflib.unified_diff(known, lines, "recorded", "played", lineterm="", n=0)]
    if "--write" in sys.argv:
        FILE.write_text("\n".join([*lines, ""]), "utf-8")
        return 0
    sys.stdout.write("".join(f"{line}\n" for line in changed or ["as recorded"]))
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
