"""Plays the recorded sessions and names, for each, the first request, event and summary that differ."""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # plays this tree, not an installed package

from tests.support.recorded import FILE, scripts, taped


def main() -> int:
    """Compares the digests, or writes them; returns 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sessions", nargs="*", help="names of sessions; all by default")
    parser.add_argument("--write", action="store_true", help="record them anew")
    parser.add_argument("--dump", type=Path, metavar="DIR", help="write all in full into new folders there, for a diff")
    given = parser.parse_args()
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    has_changed = False
    for name, script in scripts().items():
        if given.sessions and name not in given.sessions:
            continue
        started, folder = time.process_time(), given.dump / name if given.dump else None
        if folder:
            folder.mkdir(parents=True)
        tape = taped(script, folder)
        digests = tape.digests()
        found = tape.differences(known.get(name, {}))
        has_changed |= bool(found)
        counts = ", ".join(f"{len(joined.split())} {kind}" for kind, joined in digests.items())
        line = (
            f"{name}: {'differs' if found else 'as recorded'} ({counts}; {time.process_time() - started:.1f} s of CPU)"
        )
        sys.stdout.write("\n  ".join([line, *found]) + "\n")
        known[name] = digests
    if given.write:
        FILE.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
    return int(has_changed and not given.write)


if __name__ == "__main__":
    sys.exit(main())
