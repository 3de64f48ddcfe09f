"""The mark that stands where a secret was."""

from __future__ import annotations

import re

OWN = "own pattern"
"""The kind that the mark of a user's own pattern names."""
MARK = re.compile(r"\[redacted: [^\]\n]{1,40}\]")


def mark(kind: str) -> str:
    return f"[redacted: {kind}]"
