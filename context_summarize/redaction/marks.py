"""The mark that replaces a secret."""

from __future__ import annotations

import re

OWN = "own pattern"
"""The kind in the mark for a user's own pattern."""
MARK = re.compile(r"\[redacted: [^\]\n]{1,40}\]")


def mark(kind: str) -> str:
    return f"[redacted: {kind}]"
