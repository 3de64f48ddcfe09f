"""The marks that replace a secret, and a text that may hold one."""

from __future__ import annotations

import re

OWN = "own pattern"
"""The kind in the mark for a user's own pattern."""
WITHHELD = "[withheld: a redact pattern took too long]"
"""In place of a whole text that the user's own patterns could not search in time."""
MARK = re.compile(rf"\[redacted: [^\]\n]{{1,40}}\]|{re.escape(WITHHELD)}")


def mark(kind: str) -> str:
    return f"[redacted: {kind}]"
